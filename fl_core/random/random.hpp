// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
//   key = hash64(seed, purpose)      counter = {index / 4, client, round, step << 16 | layer}      word = index % 4
//
// A number depends only on its purpose and indices, never on time, thread or order, so every block size, thread count and device draws the
// same bits.
#pragma once

// Philox needs no intrinsics; their header would dominate the compile time.
#ifndef R123_USE_SSE
#define R123_USE_SSE 0
#endif
#include <Random123/philox.h>

#include <cstdint>
#include <utility>

#include "fl_core/config/device.hpp"

namespace fl {

// Purposes of random numbers. The value enters the key, so the order of this list is part of the results.
enum class Purpose : std::uint32_t {
  partition = 1,
  initial_model = 2,
  participation = 3,
  minibatch = 4,
  compressor = 5,
  synthetic_data = 6,
  coin = 7,
  holdout = 8,
  start = 9,
  epoch = 10,
  inside_model = 11,
  feature_noise = 12,
  negatives = 13,
  ranking = 14,
  local_work = 15,
  devices = 16,
  network = 17,
  availability = 18,
  jitter = 19,
  asynchronous = 20,
};

// The four seeds of a scenario.
struct Seeds {
  std::uint64_t data = 1, init = 1, sampling = 1, compressor = 1;
};

// Returns SplitMix64's finaliser over (seed, purpose).
[[nodiscard]] FL_HD inline std::uint64_t hash64(std::uint64_t seed, std::uint64_t salt) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15ull + (salt + 1) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// The random numbers of one (purpose, client, round, step, layer), addressed by index. It is copyable and has no state.
struct RandomStream {
  std::uint32_t key0 = 0, key1 = 0, client = 0, round = 0, step_layer = 0;

  RandomStream() = default;
  FL_HD RandomStream(std::uint64_t key, std::uint32_t client_, std::uint32_t round_, std::uint32_t step = 0, std::uint32_t layer = 0)
      : key0(static_cast<std::uint32_t>(key)),
        key1(static_cast<std::uint32_t>(key >> 32)),
        client(client_),
        round(round_),
        step_layer(step << 16 | layer) {}

  // Returns four words: those of indices 4*quad .. 4*quad+3.
  FL_HD void quad(std::uint32_t quad_index, std::uint32_t out[4]) const {
    r123::Philox4x32_R<10>::ctr_type counter = {{quad_index, client, round, step_layer}};
    r123::Philox4x32_R<10>::key_type key = {{key0, key1}};
    const auto words = r123::Philox4x32_R<10>()(counter, key);
    for (int i = 0; i < 4; ++i) out[i] = words[i];
  }
  [[nodiscard]] FL_HD std::uint32_t bits(std::uint64_t index) const {
    std::uint32_t words[4];
    quad(static_cast<std::uint32_t>(index / 4), words);
    const std::uint32_t low = (index & 1) != 0 ? words[1] : words[0], high = (index & 1) != 0 ? words[3] : words[2];
    return (index & 2) != 0 ? high : low;  // words[index % 4] would lie in a GPU's memory instead of its registers
  }
  // Returns a uniform number in [0, 1) from one word, with 24 bits for float and 32 bits for double.
  template <class T>
  [[nodiscard]] FL_HD static T to_uniform(std::uint32_t word) {
    if constexpr (sizeof(T) == sizeof(float))
      return static_cast<float>(word >> 8) * 0x1p-24f;
    else
      return static_cast<double>(word) * 0x1p-32;
  }
  template <class T>
  [[nodiscard]] FL_HD T uniform(std::uint64_t index) const {
    return to_uniform<T>(bits(index));
  }
};

// Draws numbers in sequence from one stream on the host, for partitioners, participation and synthetic data.
class FL_API RandomSequence {
 public:
  explicit RandomSequence(const RandomStream& stream) : stream_(stream) {}
  RandomSequence(std::uint64_t seed, Purpose purpose, std::uint32_t client = 0, std::uint32_t round = 0)
      : stream_(hash64(seed, static_cast<std::uint64_t>(purpose)), client, round) {}

  [[nodiscard]] std::uint32_t next_bits();
  [[nodiscard]] double uniform();                          // [0, 1), 53 bits
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);  // 0 .. bound-1, unbiased
  [[nodiscard]] double normal();                           // Box-Muller
  [[nodiscard]] double gamma(double shape);                // Marsaglia-Tsang, any shape > 0, scale 1
  template <class It>
  void shuffle(It begin, It end) {
    for (auto n = end - begin; n > 1; --n) std::swap(begin[n - 1], begin[below(static_cast<std::uint64_t>(n))]);
  }

 private:
  RandomStream stream_;
  std::uint64_t index_ = 0;
  std::uint32_t words_[4] = {};  // words of indices index_ / 4 * 4 and following
};

}  // namespace fl
