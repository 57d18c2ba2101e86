// The part of CUDA's header of that name that kernels use: numbers with the exponents of float and 7 fraction bits.
#pragma once

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  std::uint16_t bits;
};
// To the nearest, ties to even.
[[nodiscard]] inline __nv_bfloat16 __float2bfloat16(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  if ((word & 0x7FFFFFFFu) > 0x7F800000u) return {0x7FFF};
  return {static_cast<std::uint16_t>((word + 0x7FFFu + (word >> 16 & 1u)) >> 16)};
}
[[nodiscard]] inline float __bfloat162float(__nv_bfloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }
