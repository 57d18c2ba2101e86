// The functions of fl_core/ops/cuda/instructions.cuh on the emulator. Copies are there at once. The lanes of a warp find each other's words
// of a product in memory that they share.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/emulator/cuda_bf16.h"
#include "tests/emulator/cuda_runtime.h"

namespace fl::emulator {

template <class T>
void copy_async(T* to, const T* from, bool is_there) {
  *to = is_there ? *from : T(0);
}
inline void end_copies() {}
template <int kOnTheirWay>
void wait_for_copies() {}

[[nodiscard]] inline std::uint32_t to_tf32(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  return (word & 0x7F800000u) == 0x7F800000u ? word : (word + 0x1000u) & ~0x1FFFu;
}
[[nodiscard]] inline std::uint32_t to_bf16_pair(float low, float high) {
  return std::uint32_t{__float2bfloat16(low).bits} | std::uint32_t{__float2bfloat16(high).bits} << 16;
}

struct OfTf32 {
  static constexpr unsigned kNumbers = 1;  // in a word
  static float number(std::uint32_t word, unsigned) { return std::bit_cast<float>(word); }
};
struct OfBf16 {
  static constexpr unsigned kNumbers = 2;
  static float number(std::uint32_t word, unsigned i) {
    return __bfloat162float({static_cast<std::uint16_t>(i == 0 ? word & 0xFFFFu : word >> 16)});
  }
};

template <class Format>
void multiply_words(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  struct Words {
    std::uint32_t a[4], b[2];
  };
  static thread_local Words words[32][kWarpLanes];  // of each warp
  Words(&of)[kWarpLanes] = words[thread_index.x / kWarpLanes];
  of[lane()] = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  __syncwarp();
  const unsigned group = lane() / 4, place = lane() % 4;
  for (unsigned entry = 0; entry < 4; ++entry) {
    const unsigned lower = entry / 2, column = 2 * place + entry % 2;
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned depth = 0; depth < 4; ++depth)
        for (unsigned i = 0; i < Format::kNumbers; ++i)
          sum[entry] = std::fma(Format::number(of[group * 4 + depth].a[half * 2 + lower], i),
                                Format::number(of[column * 4 + depth].b[half], i), sum[entry]);
  }
  __syncwarp();
}
inline void multiply_tf32(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) { multiply_words<OfTf32>(sum, a, b); }
inline void multiply_bf16(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) { multiply_words<OfBf16>(sum, a, b); }

}  // namespace fl::emulator
