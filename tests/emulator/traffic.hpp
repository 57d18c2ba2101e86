// Counts on the emulator the bytes that kernels move between a GPU's chip and its memory (FL_CUDA_COUNT_BYTES). Device and managed memory
// count; shared memory, thread-local storage and pinned host memory do not.
//
// The model of a multiprocessor's cache is simple: a block moves every sector of 32 bytes once, and again if it returns to the sector after
// a barrier before which it had touched more than kKeptBytes. All accesses between two barriers are thus coalesced, in any order. The model
// has no second-level cache: a sector that several blocks touch is moved for each of them. Traffic::distinct_* counts the distinct sectors
// that a kernel touches, which is the traffic with an unlimited second-level cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace fl::emulator {

inline constexpr std::size_t kSectorBytes = 32;
inline constexpr std::size_t kKeptBytes = 32 * 1024;  // of the 256 KiB of a multiprocessor that runs eight blocks of 256 threads

struct Traffic {
  std::uint64_t launches = 0;
  std::uint64_t requested_read = 0, requested_written = 0;  // bytes
  std::uint64_t moved_read = 0, moved_written = 0;
  std::uint64_t distinct_read = 0, distinct_written = 0;

  [[nodiscard]] std::uint64_t requested() const { return requested_read + requested_written; }
  [[nodiscard]] std::uint64_t moved() const { return moved_read + moved_written; }
  [[nodiscard]] std::uint64_t distinct() const { return distinct_read + distinct_written; }
  Traffic& operator+=(const Traffic& other);
};

// By the names that Launch is given, with "cudaMemcpyAsync", "cudaMemsetAsync" and CUB's functions: what moved since the last call.
std::map<std::string, Traffic> take_traffic();

// Bytes that were moved since the process began: the clock of events, so that what chooses by time chooses what moves least.
[[nodiscard]] std::uint64_t moved_in_all();

// ---- what the emulator calls ----

// Declares addresses as memory of the GPU, for the life of the process.
void count_memory(const void* begin, std::size_t bytes);
// Adds what the function of a library moves, `times` times, where the address lies in the GPU's memory.
void count_read(const char* name, const void* from, std::size_t bytes, std::size_t times = 1);
void count_written(const char* name, const void* to, std::size_t bytes, std::size_t times = 1);

// A kernel that runs on this thread; those of other threads wait. Its accesses are counted until it ends.
class CountedKernel {
 public:
  explicit CountedKernel(const char* name);
  ~CountedKernel();
  CountedKernel(const CountedKernel&) = delete;
  CountedKernel& operator=(const CountedKernel&) = delete;
};
void count_block();    // the next block begins
void count_barrier();  // all threads of the block have met

}  // namespace fl::emulator
