// The emulated GPU's memory, for tests with little of it.
#pragma once

#include <cstddef>

namespace fl::emulator {

inline constexpr std::size_t kMemory = std::size_t{1} << 36;  // bytes, unless a test wants less

// As much memory as this has the GPU, until it ends; the most that was taken of it by then.
class Card {
 public:
  explicit Card(std::size_t bytes);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  // Managed memory may be granted beyond what there is: a GPU may hang then.
  [[nodiscard]] std::size_t most_taken() const;
};

// Bytes of device and managed memory that are taken.
[[nodiscard]] std::size_t taken_bytes();

// A GPU that cannot share managed memory with a host that runs at the same time.
void set_reaches_together(bool reaches);

// While held, streams are behind every event that is recorded.
void hold_streams(bool hold);
// Throws Fault if a kernel has written beyond the end of a block, where FEDBITS_CUDA_POOL=off leaves bytes between blocks.
void find_overruns(const char* kernel);
// Returns the number of allocation requests.
[[nodiscard]] std::size_t allocations();

}  // namespace fl::emulator
