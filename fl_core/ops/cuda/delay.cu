#include <atomic>
#include <cstdint>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/delay.hpp"
#include "fl_core/ops/cuda/diagnosis.hpp"

namespace fl::cuda {

#if defined(FL_CUDA_EMULATOR)

void delay(cudaStream_t /*stream*/) {}  // tests/emulator/streams.hpp lets streams be late

#else

namespace {

constexpr unsigned kLongest = 100'000;  // nanoseconds
constexpr unsigned kOneIn = 4;          // one launch in kOneIn waits, on average

[[nodiscard]] __device__ std::uint64_t nanoseconds() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void wait(unsigned length) {
  const std::uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < length) __nanosleep(500);
}

// The number `i` of a sequence of random words (SplitMix64, as in Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// 2014).
[[nodiscard]] std::uint64_t random_word(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

}  // namespace

void delay(cudaStream_t stream) {
  const std::uint64_t seed = diagnosis().delay_seed;
  if (seed == 0) return;
  static std::atomic<std::uint64_t> drawn{0};
  const std::uint64_t word = random_word(seed, drawn++);
  if (word % kOneIn != 0) return;
  wait<<<1, 1, 0, stream>>>(static_cast<unsigned>(word / kOneIn % kLongest));
  FL_CUDA_CHECK(cudaGetLastError());
}

#endif

}  // namespace fl::cuda
