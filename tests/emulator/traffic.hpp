// What kernels move between a GPU's chip and its memory, counted on the emulator (FL_CUDA_COUNT_BYTES). What counts as memory is
// device and managed memory; shared memory, what threads keep for themselves, and pinned memory of the host do not.
//
// The cache of a multiprocessor is modelled in one line: a block moves every sector of 32 bytes once, and again when it comes back to it
// after a barrier before which it had touched more than kKeptBytes. That is a coalescing of all accesses between two barriers, whatever
// their order. There is no second-level cache: a sector that several blocks touch is moved for each of them. Traffic::distinct_* are the
// sectors that a kernel touches at all, i.e. what an endless second-level cache would move.
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
