// Implements the calls that the compiler inserts for every load and store (-fsanitize=thread); they count the traffic.
#include "tests/emulator/traffic.hpp"

#include <sys/mman.h>

#include <array>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace fl::emulator {
namespace {

// The block and the kernel that touched a sector last.
struct Stamps {
  std::uint32_t block_read = 0, block_written = 0, kernel_read = 0, kernel_written = 0;
};

struct Memory {
  std::uintptr_t begin = 0, bytes = 0;
  Stamps* stamps = nullptr;  // [bytes / kSectorBytes]
};

struct Counting {
  std::array<Memory, 2> memories;
  std::size_t num_memories = 0;
  std::map<std::string, Traffic> by_name;
  std::mutex names;   // guards by_name and memories
  std::mutex kernel;  // held while one runs
  std::uint32_t block = 0, number = 0;
  std::uint64_t before = 0, in_all = 0;  // bytes moved: by this kernel's name until it began, and by all that has ended
  std::size_t touched = 0;               // sectors, since the block's cache was empty
};

Counting& counting() {
  static auto* all = new Counting;  // outlives kernels that run while the process ends
  return *all;
}

thread_local constinit Traffic* counted = nullptr;  // of the kernel that runs on this thread

[[nodiscard]] const Memory* memory_of(std::uintptr_t address) {
  const Counting& all = counting();
  for (std::size_t i = 0; i < all.num_memories; ++i)
    if (address - all.memories[i].begin < all.memories[i].bytes) return &all.memories[i];
  return nullptr;
}

// Adds a sector to those that were moved, unless the block, the kernel had it already.
void touch(std::uint32_t& block_stamp, std::uint32_t& kernel_stamp, std::uint64_t& moved, std::uint64_t& distinct) {
  Counting& all = counting();
  if (block_stamp == all.block) return;
  block_stamp = all.block;
  moved += kSectorBytes;
  ++all.touched;
  if (kernel_stamp == all.number) return;
  kernel_stamp = all.number;
  distinct += kSectorBytes;
}

void access(const void* at, std::size_t bytes, bool writes) {
  if (counted == nullptr || bytes == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const Memory* memory = memory_of(address);
  if (memory == nullptr) return;
  (writes ? counted->requested_written : counted->requested_read) += bytes;
  const std::size_t first = (address - memory->begin) / kSectorBytes, last = (address - memory->begin + bytes - 1) / kSectorBytes;
  for (std::size_t sector = first; sector <= last; ++sector) {
    Stamps& stamps = memory->stamps[sector];
    if (writes)
      touch(stamps.block_written, stamps.kernel_written, counted->moved_written, counted->distinct_written);
    else
      touch(stamps.block_read, stamps.kernel_read, counted->moved_read, counted->distinct_read);
  }
}

void next(std::uint32_t& number) {
  if (++number == 0) throw std::runtime_error("more blocks than can be told apart: count smaller work");
}

// Bytes of the sectors that a stretch lies in.
[[nodiscard]] std::uint64_t in_sectors(const void* begin, std::size_t bytes) {
  if (bytes == 0) return 0;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  return ((address + bytes - 1) / kSectorBytes - address / kSectorBytes + 1) * kSectorBytes;
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  launches += other.launches;
  requested_read += other.requested_read;
  requested_written += other.requested_written;
  moved_read += other.moved_read;
  moved_written += other.moved_written;
  distinct_read += other.distinct_read;
  distinct_written += other.distinct_written;
  return *this;
}

std::uint64_t moved_in_all() {
  const std::lock_guard lock(counting().names);
  return counting().in_all;
}

std::map<std::string, Traffic> take_traffic() {
  const std::lock_guard lock(counting().names);
  return std::exchange(counting().by_name, {});
}

void count_memory(const void* begin, std::size_t bytes) {
  Counting& all = counting();
  const std::lock_guard lock(all.names);
  if (all.num_memories == all.memories.size()) throw std::runtime_error("the emulated GPU has more kinds of memory than are counted");
  void* stamps = mmap(nullptr, bytes / kSectorBytes * sizeof(Stamps), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0);  // zeros, there when they are touched
  if (stamps == MAP_FAILED) throw std::runtime_error("there is no room for the counts of " + std::to_string(bytes) + " bytes");
  all.memories[all.num_memories++] = {reinterpret_cast<std::uintptr_t>(begin), bytes, static_cast<Stamps*>(stamps)};
}

void count_read(const char* name, const void* from, std::size_t bytes, std::size_t times) {
  const std::lock_guard lock(counting().names);
  if (memory_of(reinterpret_cast<std::uintptr_t>(from)) == nullptr) return;
  const std::uint64_t moved = in_sectors(from, bytes) * times;
  counting().in_all += moved;
  counting().by_name[name] += {0, bytes * times, 0, moved, 0, moved, 0};
}
void count_written(const char* name, const void* to, std::size_t bytes, std::size_t times) {
  const std::lock_guard lock(counting().names);
  if (memory_of(reinterpret_cast<std::uintptr_t>(to)) == nullptr) return;
  const std::uint64_t moved = in_sectors(to, bytes) * times;
  counting().in_all += moved;
  counting().by_name[name] += {1, 0, bytes * times, 0, moved, 0, moved};
}

CountedKernel::CountedKernel(const char* name) {
  counting().kernel.lock();
  next(counting().number);
  const std::lock_guard lock(counting().names);
  counted = &counting().by_name[name];
  ++counted->launches;
  counting().before = counted->moved();
}
CountedKernel::~CountedKernel() {
  {
    const std::lock_guard lock(counting().names);
    counting().in_all += counted->moved() - counting().before;
  }
  counted = nullptr;
  counting().kernel.unlock();
}
void count_block() {
  next(counting().block);
  counting().touched = 0;
}
void count_barrier() {
  if (counting().touched * kSectorBytes > kKeptBytes) count_block();
}

}  // namespace fl::emulator

// ---- the calls ----

using fl::emulator::access;

extern "C" {
#define FL_COUNT(bytes)                                                     \
  void __tsan_read##bytes(void* at) { access(at, bytes, false); }           \
  void __tsan_write##bytes(void* at) { access(at, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* at) { access(at, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* at) { access(at, bytes, true); } \
  void __tsan_volatile_read##bytes(void* at) { access(at, bytes, false); }  \
  void __tsan_volatile_write##bytes(void* at) { access(at, bytes, true); }
FL_COUNT(1)
FL_COUNT(2)
FL_COUNT(4)
FL_COUNT(8)
FL_COUNT(16)
#undef FL_COUNT
void __tsan_read_range(void* at, unsigned long bytes) { access(at, bytes, false); }
void __tsan_write_range(void* at, unsigned long bytes) { access(at, bytes, true); }
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// std::atomic and guards of static variables, which are the host's: kernels use atomicAdd and its like. The order is the strictest.
#define FL_ATOMIC(bits, T)                                                                                            \
  T __tsan_atomic##bits##_load(const volatile T* at, int) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }           \
  void __tsan_atomic##bits##_store(volatile T* at, T x, int) { __atomic_store_n(at, x, __ATOMIC_SEQ_CST); }           \
  T __tsan_atomic##bits##_exchange(volatile T* at, T x, int) { return __atomic_exchange_n(at, x, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_add(volatile T* at, T x, int) { return __atomic_fetch_add(at, x, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_sub(volatile T* at, T x, int) { return __atomic_fetch_sub(at, x, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_and(volatile T* at, T x, int) { return __atomic_fetch_and(at, x, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_or(volatile T* at, T x, int) { return __atomic_fetch_or(at, x, __ATOMIC_SEQ_CST); }   \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* expected, T x, int, int) {                     \
    return __atomic_compare_exchange_n(at, expected, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : 0;           \
  }                                                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* expected, T x, int, int) {                       \
    return __atomic_compare_exchange_n(at, expected, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : 0;           \
  }
FL_ATOMIC(8, unsigned char)
FL_ATOMIC(16, unsigned short)
FL_ATOMIC(32, unsigned int)
FL_ATOMIC(64, unsigned long)
#undef FL_ATOMIC
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
}
