// Division of indices by the sizes of a layer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/config/device.hpp"

namespace fl::cuda {

// Quotients by a number that is known when a kernel starts, without a division: n / divisor = (n multiplier / 2^32 + n) >> shift for n
// below 2^31. Source: T. Granlund, P. Montgomery, "Division by invariant integers using multiplication", PLDI 1994.
struct Divisor {
  std::uint32_t divisor = 1, multiplier = 0, shift = 0;
  Divisor() = default;
  explicit Divisor(std::size_t by) : divisor(static_cast<std::uint32_t>(by)) {
    while ((std::uint64_t{1} << shift) < by) ++shift;
    multiplier = static_cast<std::uint32_t>((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - by) / by + 1);
  }
  [[nodiscard]] FL_HD std::uint32_t quotient(std::uint32_t n) const {
    const auto high = static_cast<std::uint32_t>(std::uint64_t{n} * multiplier >> 32);
    return static_cast<std::uint32_t>((std::uint64_t{high} + n) >> shift);
  }
  // Replaces n by its quotient and returns the remainder: n = quotient * divisor + remainder.
  FL_HD std::uint32_t split(std::uint32_t& n) const {
    const std::uint32_t whole = n, q = quotient(n);
    n = q;
    return whole - q * divisor;
  }
};

}  // namespace fl::cuda
