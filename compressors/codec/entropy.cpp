// The entropy bound of a message, which no code for its model of positions and levels can beat on average.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "compressors/codec/level_coder.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl::codec {

namespace {

double log2_factorial(double n) {
  int sign = 0;
  return ::lgamma_r(n + 1, &sign) / std::log(2.0);  // std::lgamma writes a global variable
}

double compute_log2_binomial(std::uint64_t n, std::uint64_t k) {
  constexpr std::uint64_t kFew = 16;  // products of few terms avoid the loss of digits in a difference of large logarithms
  double bits = 0;
  if (k > kFew) {
    return log2_factorial(static_cast<double>(n)) - log2_factorial(static_cast<double>(k)) - log2_factorial(static_cast<double>(n - k));
  }
  for (std::uint64_t i = 0; i < k; ++i) bits += std::log2(static_cast<double>(n - i) / static_cast<double>(i + 1));
  return bits;
}

// Calls count(c) for each level that occurs: with a table if the format is small, else with a sorted copy.
template <class T, class Count>
void for_each_count(const Payload<T>& message, std::span<const std::uint32_t> counted, Count count) {
  for (const std::uint32_t c : counted) {
    if (c > 0) count(c);
  }
  if (!counted.empty()) return;
  const std::size_t n = message.num_sent;
  if (num_levels(message.level_format) <= std::min<std::uint64_t>(kMostCounted, 16 * n + 256)) {
    static thread_local std::vector<std::uint64_t> table;
    count_levels(message, table);
    for (const std::uint64_t c : table) {
      if (c > 0) count(c);
    }
    return;
  }
  static thread_local std::vector<std::int32_t> sorted;
  sorted.resize(n);
  for (std::size_t i = 0; i < n; ++i) sorted[i] = message.level(i);
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0, run = 0; i < n; i = run) {
    while (run < n && sorted[run] == sorted[i]) ++run;
    count(run - i);
  }
}

// Returns n H = n log2 n - sum c log2 c.
template <class T>
double level_entropy(const Payload<T>& message, std::span<const std::uint32_t> counted) {
  const auto x_log2_x = [](std::uint64_t x) { return static_cast<double>(x) * std::log2(static_cast<double>(x)); };
  double bits = message.num_sent > 0 ? x_log2_x(message.num_sent) : 0;
  for_each_count(message, counted, [&](std::uint64_t c) { bits -= x_log2_x(c); });
  return std::max(bits, 0.0);
}

}  // namespace

double log2_binomial(std::uint64_t n, std::uint64_t k) {
  if (k > n) return 0;
  k = std::min(k, n - k);
  if (k == 0) return 0;
  struct Known {
    std::uint64_t n = 0, k = 0;
    double bits = 0;
  };
  // The same few pairs occur every round.
  static thread_local std::array<Known, 256> cache;
  Known& slot = cache[(n * 0x9e3779b97f4a7c15ULL + k * 0xd1b54a32d192ed03ULL) >> 56];
  if (slot.n != n || slot.k != k) slot = Known{.n = n, .k = k, .bits = compute_log2_binomial(n, k)};
  return slot.bits;
}

namespace {

template <class T>
double part_entropy(const Payload<T>& message, const Scope& scope, const Tally& tally) {
  constexpr double kNativeBits = 8 * sizeof(T);
  Segment plain;
  const auto segments = message_segments(scope, has_own_shape(message, scope), message.length, plain);
  std::size_t active = message.num_sent > 0 ? segments.size() : 0;  // segments that send something
  double bits = static_cast<double>(message.excluded.size()) * kNativeBits;
  if (message.positions == Positions::list) {
    active = 0;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (!message.has_known_positions()) bits += log2_binomial(segments[s].size(), message.counts[s]);
      active += message.counts[s] > 0 ? 1 : 0;
    }
  }
  if (message.values != WireValue::levels) return bits + static_cast<double>(message.num_sent) * bits_of(message.values);
  bits += static_cast<double>(active * scales_per_segment(message.level_format)) * kNativeBits;
  return bits + level_entropy(message, tally.levels);
}

}  // namespace

template <class T>
double entropy_bits(const Payload<T>& message, const Scope& scope, const Tally& tally) {
  if (message.silent) return 0;
  return part_entropy(message, scope, tally) + (message.rest != nullptr ? part_entropy(*message.rest, scope, Tally{}) : 0.0);
}

template double entropy_bits<float>(const Payload<float>&, const Scope&, const Tally&);
template double entropy_bits<double>(const Payload<double>&, const Scope&, const Tally&);

}  // namespace fl::codec
