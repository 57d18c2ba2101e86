#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/emulator/card.hpp"
#include "tests/emulator/cuda_runtime.h"
#include "tests/emulator/streams.hpp"
#include "tests/support/sanitized.hpp"
#if defined(FL_CUDA_COUNT_BYTES)
#include "tests/emulator/traffic.hpp"
#endif

namespace {

constexpr std::size_t kAlignment = 256;
constexpr int kNonsense = 0xA5;  // device memory is not zeroed

#if FL_SANITIZED

// Blocks of the heap of exactly the size that was asked for, so that the address sanitizer sees what is beyond them.
struct DeviceMemory {
  void* take(std::size_t bytes) {
    void* memory = nullptr;
    return posix_memalign(&memory, kAlignment, bytes) == 0 ? std::memset(memory, kNonsense, bytes) : nullptr;
  }
  void give_back(void* memory) { std::free(memory); }
  void open() {}
  void close() {}
};

#else

// A stretch of addresses of its own, which can be touched while a kernel or a copy is under way; a host that follows a pointer into it
// at another time is killed by SIGSEGV, unless it is shared with the host.
class DeviceMemory {
 public:
  explicit DeviceMemory(bool is_shared = false)
      : base_(static_cast<std::byte*>(mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        open_(is_shared ? 1 : 0) {  // never given back
#if defined(FL_CUDA_COUNT_BYTES)
    fl::emulator::count_memory(base_, kReserved);
#endif
  }

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::size_t begin = used_;
    if (const auto found = free_.find(bytes); found != free_.end()) {
      begin = found->second;
      free_.erase(found);
    } else if (bytes > kReserved - used_) {
      return nullptr;
    } else {
      used_ += bytes;
      if (open_ > 0) protect(PROT_READ | PROT_WRITE);
    }
    size_of_[base_ + begin] = bytes;
    if (open_ == 0) protect(PROT_READ | PROT_WRITE);
    std::memset(base_ + begin, kNonsense, bytes);
    if (open_ == 0) protect(PROT_NONE);
    return base_ + begin;
  }
  void give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = size_of_.find(static_cast<std::byte*>(memory));
    if (found == size_of_.end()) return;
    forget(found->first, found->second);
    free_.emplace(found->second, static_cast<std::size_t>(found->first - base_));
    size_of_.erase(found);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    if (open_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) protect(PROT_NONE);
  }
  [[nodiscard]] bool owns(const void* memory) const { return memory >= base_ && memory < base_ + kReserved; }

 private:
  static constexpr std::size_t kReserved = std::size_t{1} << 36;
  static constexpr std::size_t kPage = 4096;
  // Opening and closing takes as long as there are pages.
  static void forget(std::byte* begin, std::size_t bytes) {
    std::byte* first = begin + (kPage - reinterpret_cast<std::uintptr_t>(begin) % kPage) % kPage;
    const std::size_t whole = bytes - std::min(bytes, static_cast<std::size_t>(first - begin));
    if (whole >= kPage) madvise(first, whole / kPage * kPage, MADV_DONTNEED);
  }
  void protect(int access) const {
    if (used_ > 0) mprotect(base_, (used_ + kPage - 1) / kPage * kPage, access);
  }
  std::byte* base_;
  std::size_t used_ = 0;
  int open_ = 0;
  std::map<std::byte*, std::size_t> size_of_;
  std::multimap<std::size_t, std::size_t> free_;  // by size
  std::mutex mutex_;
};

#endif

DeviceMemory& device_memory() {
  static auto* memory = new DeviceMemory;  // is never destroyed, so that late frees still work
  return *memory;
}
#if defined(FL_CUDA_COUNT_BYTES)
// Managed memory, which is the host's heap where nothing is counted.
DeviceMemory& managed_memory() {
  static auto* memory = new DeviceMemory(true);
  return *memory;
}
#endif

// With FEDBITS_CUDA_POOL=off each block has bytes behind it that belong to nobody, and every kernel leaves them as they are. (The address
// sanitizer sees what is beyond a block without them.)
constexpr unsigned char kNobodys = 0x5C;
[[nodiscard]] std::size_t bytes_behind() {
#if FL_SANITIZED
  return 0;
#else
  static const bool is_asked = [] {
    const char* pool = std::getenv("FEDBITS_CUDA_POOL");
    return pool != nullptr && std::strcmp(pool, "off") == 0;
  }();
  return is_asked ? kAlignment : 0;
#endif
}

// The allocated memory of the GPU.
class Taken {
 public:
  std::size_t total = fl::emulator::kMemory;
  bool reaches_together = true;
  std::atomic<bool> holds_streams = false;
  std::atomic<std::size_t> allocations = 0;
  void add(void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (const std::size_t behind = bytes_behind(); behind > 0) {
      const fl::emulator::DeviceAccess access;
      std::memset(static_cast<std::byte*>(memory) + bytes, kNobodys, behind);
    }
    size_of_[memory] = bytes;
    taken_ += bytes;
    most_ = std::max(most_, taken_);
  }
  void remove(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = size_of_.find(memory);
    if (found == size_of_.end()) return;
    taken_ -= found->second;
    size_of_.erase(found);
  }
  [[nodiscard]] std::size_t bytes() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  [[nodiscard]] std::size_t most() {
    const std::lock_guard lock(mutex_);
    return most_;
  }
  void begin() {
    const std::lock_guard lock(mutex_);
    most_ = taken_;
  }
  // The size of a block that has been written beyond its end, once; 0 if there is none.
  [[nodiscard]] std::size_t overrun() {
    const std::lock_guard lock(mutex_);
    for (const auto& [memory, bytes] : size_of_) {
      auto* end = static_cast<unsigned char*>(memory) + bytes;
      if (std::all_of(end, end + bytes_behind(), [](unsigned char byte) { return byte == kNobodys; })) continue;
      std::memset(end, kNobodys, bytes_behind());
      return bytes;
    }
    return 0;
  }
  [[nodiscard]] bool fits(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    return taken_ + bytes <= total;
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::size_t> size_of_;
  std::size_t taken_ = 0, most_ = 0;
};

Taken& taken() {
  static auto* memory = new Taken;
  return *memory;
}

cudaError_t take_of_host(void** memory, std::size_t bytes) {
  ++taken().allocations;
  if (posix_memalign(memory, kAlignment, bytes + bytes_behind()) != 0) return cudaErrorMemoryAllocation;
  std::memset(*memory, kNonsense, bytes);
  return cudaSuccess;
}

}  // namespace

namespace fl::emulator {
DeviceAccess::DeviceAccess() { device_memory().open(); }
DeviceAccess::~DeviceAccess() { device_memory().close(); }

Card::Card(std::size_t bytes) {
  taken().begin();
  taken().total = bytes;
}
Card::~Card() { taken().total = kMemory; }
std::size_t Card::most_taken() const { return taken().most(); }
std::size_t taken_bytes() { return taken().bytes(); }
void hold_streams(bool hold) { taken().holds_streams = hold; }
std::size_t allocations() { return taken().allocations; }
void set_reaches_together(bool reaches) { taken().reaches_together = reaches; }
void find_overruns(const char* kernel) {
  if (bytes_behind() == 0) return;
  if (const std::size_t bytes = taken().overrun(); bytes > 0)
    throw Fault(std::string(kernel) + " wrote beyond the end of a block of " + std::to_string(bytes) + " bytes");
}
}  // namespace fl::emulator

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  ++taken().allocations;
  *memory = taken().fits(bytes) ? device_memory().take(bytes + bytes_behind()) : nullptr;
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  taken().add(*memory, bytes);
  return cudaSuccess;
}
// The host's heap: both may touch it. As much as is asked for.
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned /*flags*/) {
#if defined(FL_CUDA_COUNT_BYTES)
  ++taken().allocations;
  *memory = managed_memory().take(bytes + bytes_behind());
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
#else
  if (take_of_host(memory, bytes) != cudaSuccess) return cudaErrorMemoryAllocation;
#endif
  taken().add(*memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  fl::emulator::finish_all();
  taken().remove(memory);
#if FL_SANITIZED
  device_memory().give_back(memory);
#else
  if (device_memory().owns(memory)) device_memory().give_back(memory);
#if defined(FL_CUDA_COUNT_BYTES)
  else if (managed_memory().owns(memory))
    managed_memory().give_back(memory);
#endif
  else
    std::free(memory);
#endif
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) { return take_of_host(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNotReady: return "device not ready";
  }
  return "unrecognized error code";
}
const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorNotReady: return "cudaErrorNotReady";
  }
  return "cudaErrorUnknown";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  std::strncpy(properties->name, "emulated GPU", sizeof properties->name);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  switch (attribute) {
    case cudaDevAttrL2CacheSize: *value = 4096; return cudaSuccess;  // small, so that waves are cut
    case cudaDevAttrConcurrentManagedAccess: *value = taken().reaches_together ? 1 : 0; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(fl::emulator::kMostShared); return cudaSuccess;
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables: *value = 0; return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = taken().total;
  *free = *total - std::min(*total, taken().bytes());
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  const cudaError_t status = cudaMemsetAsync(to, value, bytes, nullptr);
  fl::emulator::finish(nullptr);
  return status;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  fl::emulator::submit(stream, [=] {
    const fl::emulator::DeviceAccess access;
    if (bytes > 0) std::memset(to, value, bytes);
#if defined(FL_CUDA_COUNT_BYTES)
    fl::emulator::count_written("cudaMemsetAsync", to, bytes);
#endif
  });
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void* /*memory*/, std::size_t /*bytes*/, int device, cudaStream_t /*stream*/) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  fl::emulator::submit(stream, [=] {
    const fl::emulator::DeviceAccess access;
    if (bytes > 0) std::memcpy(to, from, bytes);
#if defined(FL_CUDA_COUNT_BYTES)
    fl::emulator::count_read("cudaMemcpyAsync", from, bytes);
    fl::emulator::count_written("cudaMemcpyAsync", to, bytes);
#endif
  });
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = fl::emulator::create_stream();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  fl::emulator::destroy_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  fl::emulator::finish(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  fl::emulator::finish_all();
  return cudaSuccess;
}

// ---- graphs: what was recorded, to be done again and again ----

struct cudaGraph_st {
  fl::emulator::Recording work;
};
struct cudaGraphExec_st {
  fl::emulator::Recording work;
};
cudaError_t cudaStreamBeginCapture(cudaStream_t /*stream*/, cudaStreamCaptureMode /*mode*/) {
  if (fl::emulator::recording() != nullptr) return cudaErrorInvalidValue;
  fl::emulator::set_recording(new fl::emulator::Recording);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t /*stream*/, cudaStreamCaptureStatus* status) {
  *status = fl::emulator::recording() == nullptr ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t /*stream*/, cudaGraph_t* graph) {
  *graph = nullptr;
  fl::emulator::Recording* const recorded = fl::emulator::recording();
  if (recorded == nullptr) return cudaErrorInvalidValue;
  *graph = new cudaGraph_st{std::move(*recorded)};
  delete recorded;
  fl::emulator::set_recording(nullptr);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* graph_exec, cudaGraph_t graph, unsigned long long /*flags*/) {
  *graph_exec = new cudaGraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph_exec, cudaStream_t stream) {
  for (const auto& work : graph_exec->work) fl::emulator::submit(stream, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph_exec) {
  delete graph_exec;
  return cudaSuccess;
}

// ---- events: a clock that goes on by another number of milliseconds whenever it is asked, or with the bytes that are moved ----

struct cudaEvent_st {
  std::uint64_t moved = 0;
  fl::emulator::Place place;
};
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new cudaEvent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) { return cudaEventCreate(event); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->place = fl::emulator::place_of(stream);
#if defined(FL_CUDA_COUNT_BYTES)
  event->moved = fl::emulator::moved_in_all();
#endif
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return taken().holds_streams || !fl::emulator::has_come_to(event->place) ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  fl::emulator::come_to(event->place);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, [[maybe_unused]] cudaEvent_t start, [[maybe_unused]] cudaEvent_t end) {
#if defined(FL_CUDA_COUNT_BYTES)
  constexpr double kBytesPerMillisecond = 1e9;
  *milliseconds = static_cast<float>((1 + static_cast<double>(end->moved - start->moved)) / kBytesPerMillisecond);
#else
  static std::atomic<unsigned> asked{0};
  *milliseconds = static_cast<float>(1 + asked++ * 2654435761u % 97);
#endif
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
