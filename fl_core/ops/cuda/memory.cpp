#include "fl_core/memory/cuda/memory.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <tuple>

#include "fl_core/config/error.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/diagnosis.hpp"
#include "fl_core/ops/cuda/graph.hpp"
#include "fl_core/ops/cuda/pool.cuh"
#include "fl_core/ops/cuda/upload_ring.hpp"

namespace fl::cuda {

void check(cudaError_t status, const char* expression, const char* file, int line) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // not a later call's
  throw DeviceError(std::string(expression) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ") at " + file + ":" +
                    std::to_string(line));
}

int device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();  // not a later call's
  return 0;
}

std::string device_name() {
  cudaDeviceProp properties{};
  FL_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return properties.name;
}

std::string why_no_device() noexcept {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) return "no GPU is visible to the CUDA driver";
  if (status == cudaSuccess) return "";
  (void)cudaGetLastError();  // not a later call's
  return std::string("the CUDA driver finds no GPU: ") + cudaGetErrorString(status);
}

bool shares_managed_memory() noexcept {
  int reaches_together = 0;
  if (cudaDeviceGetAttribute(&reaches_together, cudaDevAttrConcurrentManagedAccess, 0) == cudaSuccess) return reaches_together != 0;
  (void)cudaGetLastError();  // not a later call's
  return false;
}

std::size_t cache_bytes_of_device() {
  int bytes = 0;
  FL_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0));
  return static_cast<std::size_t>(bytes);
}

namespace {

// The GPU's memory that this process holds, and the host's memory that it has pinned. Managed memory counts in full, wherever its pages
// are: the driver would grant more of it than the GPU has, and could then stop responding. Chunks of pools count, used or not.
class Memory {
 public:
  static Memory& instance() {
    static auto* memory = new Memory;  // must outlive the last block
    return *memory;
  }

  void* allocate(Device kind, std::size_t bytes, Contents contents) {
    if (is_recording()) throw DeviceError("memory of the GPU cannot be taken while work is recorded");
    const std::scoped_lock lock(recording_mutex(), mutex_);  // marks and waits for them spoil what another thread records
    const bool is_own = !pools_ || bytes > Pool::kLargestBlock;
    const Pool::MemoryBlock block = is_own ? Pool::MemoryBlock{ask_for(kind, bytes), false} : block_of(kind, bytes);
    return block.is_zero || contents == Contents::any ? block.memory : zeroed(kind, block.memory, bytes);
  }
  void free(Device kind, void* memory, std::size_t bytes) noexcept {
    if (!pools_ || bytes > Pool::kLargestBlock) {
      const std::scoped_lock lock(recording_mutex(), mutex_);
      // The driver waits for the GPU before it takes back the GPU's own memory, but not before it takes back the host's.
      if (kind == Device::pinned) (void)cudaDeviceSynchronize();
      return_to_driver(kind, memory, bytes);
    } else {
      const std::lock_guard lock(mutex_);
      pool(kind).give_back(memory);
    }
  }
  void add(cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    streams_.add(stream);
  }
  void remove(cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    streams_.remove(stream);
  }
  [[nodiscard]] std::size_t room(Device kind) {
    const std::scoped_lock lock(recording_mutex(), mutex_);
    trim();
    return left(kind);
  }
  [[nodiscard]] MemoryUse use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }

 private:
  // The context takes what kernels need of it when they are first started.
  static constexpr std::size_t kMostReserve = std::size_t{512} << 20;
  static constexpr std::size_t kReserveShare = 32;

  [[nodiscard]] Pool::MemoryBlock block_of(Device kind, std::size_t bytes) {
    Pool& own = pool(kind);
    if (const Pool::MemoryBlock found = own.take(bytes); found.memory != nullptr) return found;
    const std::size_t room = kind == Device::pinned ? Pool::kLargestChunk : left(kind);
    if (own.next_chunk(bytes, room) > room) {
      // Wait for pending frees: the driver has too little memory.
      own.settle();
      if (const Pool::MemoryBlock found = own.take(bytes); found.memory != nullptr) return found;
    }
    const std::size_t chunk = own.next_chunk(bytes, kind == Device::pinned ? Pool::kLargestChunk : left(kind));
    own.add_chunk(zeroed(kind, ask_for(kind, chunk), chunk), chunk);
    return own.take(bytes);
  }
  [[nodiscard]] Pool& pool(Device kind) { return kind == Device::cuda ? device_ : kind == Device::managed ? managed_ : pinned_; }
  [[nodiscard]] std::uint64_t& count_of(Device kind) {
    return kind == Device::cuda ? use_.device_bytes : kind == Device::managed ? use_.managed_bytes : use_.pinned_bytes;
  }

  // Returns the bytes of the card that this process cannot take: those of others, and a reserve for the context. The former are known for
  // certain only while this process has no managed memory, whose pages may be on the host at the moment and seem free.
  [[nodiscard]] std::size_t beside(std::size_t free, std::size_t total) {
    const std::size_t used = total - free, theirs = used - std::min<std::size_t>(used, use_.on_gpu());
    others_ = use_.managed_bytes == 0 ? theirs : std::max(others_, theirs);
    return others_ + std::min(total / kReserveShare, kMostReserve);
  }
  // Returns the bytes of the card that are free for managed memory, including the managed memory of this process.
  [[nodiscard]] std::size_t free_for_managed() {
    std::size_t free = 0, total = 0;
    FL_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return total - std::min<std::size_t>(total, beside(free, total) + use_.device_bytes);
  }
  // Bytes of a kind that may still be taken.
  [[nodiscard]] std::size_t left(Device kind) {
    const std::size_t for_both = free_for_managed(), plain = for_both - std::min<std::size_t>(for_both, use_.managed_bytes);
    if (kind != Device::managed) return plain;
    const auto most = static_cast<std::size_t>(kMostManagedShare * static_cast<double>(for_both));
    return std::min(plain, most - std::min<std::size_t>(most, use_.managed_bytes));
  }

  [[nodiscard]] void* ask_for(Device kind, std::size_t bytes) {
    if (kind == Device::managed && !shares_managed_memory())
      throw DeviceError("this GPU cannot share managed memory with a host that runs at the same time (concurrentManagedAccess is 0), and " +
                        std::to_string(bytes) + " bytes of it were asked for; use --device cpu");
    if (kind != Device::pinned && bytes > left(kind)) {
      trim();
      if (const std::size_t room = left(kind); bytes > room) refuse(kind, bytes, room);
    }
    void* memory = nullptr;
    cudaError_t status = taken_from_driver(kind, bytes, &memory);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();  // not a later call's
      trim();
      status = taken_from_driver(kind, bytes, &memory);
    }
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();  // not a later call's
      if (kind == Device::pinned) throw DeviceError("the host has no " + std::to_string(bytes) + " bytes to pin for the GPU");
      refuse(kind, bytes, left(kind));
    }
    const char* call = kind == Device::cuda ? "cudaMalloc" : kind == Device::managed ? "cudaMallocManaged" : "cudaHostAlloc";
    if (status != cudaSuccess) check(status, (std::string(call) + " of " + std::to_string(bytes) + " bytes").c_str(), __FILE__, __LINE__);
    count_of(kind) += bytes;
    return memory;
  }
  [[nodiscard]] static cudaError_t taken_from_driver(Device kind, std::size_t bytes, void** memory) {
    if (kind == Device::cuda) return cudaMalloc(memory, bytes);
    if (kind == Device::managed) return cudaMallocManaged(memory, bytes);
    return cudaHostAlloc(memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
  }
  [[noreturn]] void refuse(Device kind, std::size_t bytes, std::size_t room) {
    const std::string way_out =
        "; smaller blocks (--block), less client state on the GPU (--state-memory), fewer runs at a time (--jobs), fewer clients or a "
        "smaller model need less";
    const std::string asked = std::to_string(bytes) + " bytes were asked for, ";
    if (kind == Device::managed)
      throw DeviceError("out of memory on the GPU: managed memory may take " + percent(kMostManagedShare) + " of the " +
                        std::to_string(free_for_managed()) + " bytes that are free for this process, which has " +
                        std::to_string(use_.managed_bytes) + " of it and " + std::to_string(use_.device_bytes) +
                        " bytes of plain memory; " + asked + std::to_string(room) + " are free" + way_out +
                        ", and parts that stay on the GPU (`fedbits list feedbacks --device cuda`) need no managed memory");
    throw DeviceError("out of memory on the GPU: " + asked + std::to_string(room) + " are free beside " + std::to_string(use_.on_gpu()) +
                      " of this process" + way_out);
  }
  [[nodiscard]] static std::string percent(double share) { return std::to_string(static_cast<int>(100 * share)) + "%"; }
  void return_to_driver(Device kind, void* memory, std::size_t bytes) noexcept {
    if (kind == Device::pinned)
      cudaFreeHost(memory);
    else
      cudaFree(memory);
    count_of(kind) -= bytes;
  }

  void trim() {
    for (const Device kind : {Device::cuda, Device::managed, Device::pinned}) {
      pool(kind).settle();
      for (auto [chunk, bytes] = pool(kind).remove_unused_chunk(); chunk != nullptr;
           std::tie(chunk, bytes) = pool(kind).remove_unused_chunk())
        return_to_driver(kind, chunk, bytes);
    }
  }

  // Whole pages at a time, instead of one fault after another.
  [[nodiscard]] cudaError_t bring_to_gpu(void* memory, std::size_t bytes) {
#if CUDART_VERSION >= 13000
    return cudaMemPrefetchAsync(memory, bytes, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, stream_);
#else
    return cudaMemPrefetchAsync(memory, bytes, 0, stream_);
#endif
  }

  // On a stream of its own, which lets no other one wait.
  void* zeroed(Device kind, void* memory, std::size_t bytes) {
    if (kind == Device::pinned) return std::memset(memory, 0, bytes);
    if (stream_ == nullptr) FL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    if (kind == Device::managed) FL_CUDA_CHECK(bring_to_gpu(memory, bytes));
    FL_CUDA_CHECK(cudaMemsetAsync(memory, 0, bytes, stream_));
    FL_CUDA_CHECK(cudaStreamSynchronize(stream_));
    return memory;
  }

  const bool pools_ = diagnosis().pools_memory;
  std::mutex mutex_;
  Streams streams_;
  Pool device_{streams_}, managed_{streams_}, pinned_{streams_};
  MemoryUse use_;
  std::size_t others_ = 0;  // bytes that other processes and the context have
  cudaStream_t stream_ = nullptr;
};

}  // namespace

std::uint64_t free_bytes_of_device(Device kind) { return Memory::instance().room(kind); }
MemoryUse memory_use() { return Memory::instance().use(); }

void* allocate_bytes(Device kind, std::size_t bytes, Contents contents) {
  return bytes == 0 ? nullptr : Memory::instance().allocate(kind, bytes, contents);
}
void free_bytes(Device kind, void* memory, std::size_t bytes) noexcept { Memory::instance().free(kind, memory, bytes); }
bool pools_memory() { return diagnosis().pools_memory; }

void* create_stream() {
  cudaStream_t stream = nullptr;
  FL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Memory::instance().add(stream);
  return stream;
}

// Memory that its work uses is given back afterwards.
void destroy_stream(void* stream) noexcept {
  auto* queue = static_cast<cudaStream_t>(stream);
  cudaStreamSynchronize(queue);
  Memory::instance().remove(queue);
  cudaStreamDestroy(queue);
}

// Waiting for the whole GPU spoils what another thread records.
void synchronise() {
  const std::lock_guard lock(recording_mutex());
  FL_CUDA_CHECK(cudaDeviceSynchronize());
}
void synchronise(void* stream) { FL_CUDA_CHECK(cudaStreamSynchronize(static_cast<cudaStream_t>(stream))); }

void upload_bytes(void* to, const void* from, std::size_t bytes, void* stream) {
  if (bytes > 0) UploadRing::instance().upload(to, from, bytes, static_cast<cudaStream_t>(stream));
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  if (queue == nullptr) synchronise();
  FL_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue));  // addresses say which way
  if (queue == nullptr || to_device == Device::cpu || from_device == Device::cpu) FL_CUDA_CHECK(cudaStreamSynchronize(queue));
}

}  // namespace fl::cuda
