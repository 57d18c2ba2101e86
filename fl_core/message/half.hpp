// The 16-bit formats of raw values in messages, by their short names: fp16 is IEEE 754 binary16, bf16 is bfloat16 (small_float.hpp).
//
// fp16: magnitudes from 65520 on become infinity, those up to 2^-25 become zero; numbers between 2^-25 and 2^-14 are exact to 2^-24.
// bf16: the range of float32 with 8 significant bits.
#pragma once

#include <cstdint>

#include "fl_core/config/device.hpp"
#include "fl_core/message/small_float.hpp"

namespace fl {

// Returns the bits of the nearest binary16 number.
template <class T>
[[nodiscard]] FL_HD inline std::uint16_t half_bits(T x) {
  return small_float_bits<Binary16>(x);
}

// Returns the exact value of binary16 bits.
template <class T>
[[nodiscard]] FL_HD inline T half_value(std::uint16_t half) {
  return small_float_value<Binary16, T>(half);
}

// Returns the nearest binary16 number.
template <class T>
[[nodiscard]] FL_HD inline T round_to_half(T x) {
  return half_value<T>(half_bits(x));
}

// Returns the nearest bfloat16 number.
template <class T>
[[nodiscard]] FL_HD inline T round_to_bfloat16(T x) {
  return small_float_value<Bfloat16, T>(small_float_bits<Bfloat16>(x));
}

}  // namespace fl
