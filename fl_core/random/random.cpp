#include "fl_core/random/random.hpp"

#include <cmath>
#include <numbers>

#include "fl_core/config/error.hpp"

namespace fl {

std::uint32_t RandomSequence::next_bits() {
  constexpr std::uint64_t kLength = std::uint64_t{1} << 34;  // words of one stream: 2^32 counters of 4
  if (index_ >= kLength) throw Error("a random stream was asked for more than its 2^34 words");
  if (index_ % 4 == 0) stream_.quad(static_cast<std::uint32_t>(index_ / 4), words_);
  return words_[index_++ % 4];
}

double RandomSequence::uniform() {
  const std::uint64_t high = next_bits() >> 5, low = next_bits() >> 6;
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

// Lemire, "Fast random integer generation in an interval", TOMACS 2019: the high part of word * bound, with the few words thrown away
// that would make it uneven.
std::uint64_t RandomSequence::below(std::uint64_t bound) {
  if (bound == 0) throw Error("a random number below 0 was asked for");
  if (bound <= UINT32_MAX) {
    const auto narrow = static_cast<std::uint32_t>(bound);
    const std::uint32_t threshold = static_cast<std::uint32_t>(-narrow) % narrow;
    for (;;) {
      const std::uint64_t product = std::uint64_t{next_bits()} * narrow;
      if (static_cast<std::uint32_t>(product) >= threshold) return product >> 32;
    }
  }
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t high = next_bits();
    const std::uint64_t word = high << 32 | next_bits();
    if (word >= threshold) return word % bound;
  }
}

// u1, u2 of 53 bits each; sqrt(-2 ln(1 - u1)) cos(2 pi u2).
double RandomSequence::normal() {
  const double u1 = uniform(), u2 = uniform();
  return std::sqrt(-2.0 * std::log1p(-u1)) * std::cos(2.0 * std::numbers::pi * u2);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 2000; below shape 1 through
// Gamma(a) = Gamma(a + 1) U^(1/a).
double RandomSequence::gamma(double shape) {
  if (!(shape > 0)) throw Error("a gamma draw needs a shape above 0, got " + std::to_string(shape));
  if (shape < 1) {
    const double larger = gamma(shape + 1);
    return larger * std::pow(1.0 - uniform(), 1.0 / shape);
  }
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double z = normal(), root = 1.0 + c * z;
    if (root <= 0) continue;
    const double v = root * root * root, u = 1.0 - uniform();
    if (std::log(u) < 0.5 * z * z + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace fl
