// The 16-bit formats in which raw values travel, by their short names: fp16 is IEEE 754 binary16, bf16 is bfloat16 (small_float.hpp).
//
// fp16: magnitudes from 65520 on become infinity, those up to 2^-25 become zero; numbers between 2^-25 and 2^-14 are exact to 2^-24.
// bf16: the range of float32 with 8 significant bits.
#pragma once

#include <cstdint>

#include "fl_core/config/device.hpp"
#include "fl_core/message/small_float.hpp"

namespace fl {

// The nearest binary16, as bits.
template <class T>
[[nodiscard]] FL_HD inline std::uint16_t half_bits(T x) {
  return small_float_bits<Binary16>(x);
}

// The number that the bits stand for, exactly.
template <class T>
[[nodiscard]] FL_HD inline T half_value(std::uint16_t half) {
  return small_float_value<Binary16, T>(half);
}

// The nearest number that travels as binary16.
template <class T>
[[nodiscard]] FL_HD inline T round_to_half(T x) {
  return half_value<T>(half_bits(x));
}

// The nearest number that travels as bfloat16.
template <class T>
[[nodiscard]] FL_HD inline T round_to_bfloat16(T x) {
  return small_float_value<Bfloat16, T>(small_float_bits<Bfloat16>(x));
}

}  // namespace fl
