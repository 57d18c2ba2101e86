// The entry of largest magnitude, the lowest index among equals, in the same pass that evaluates the input and writes the state: top-1 of
// a small vector is then as fast as reading and writing it. If another thread overwrites that entry before its place is searched, the place
// is some other one of the segment.
#pragma once

#include <cstddef>
#include <utility>

#include "fl_core/ops/cpu/entries.hpp"

namespace fl::cpu {

template <class T>
struct Largest {
  std::size_t position = 0;
  T p = 0;
};

#if defined(FL_CPU_AVX512)
// p in registers, a vector of elements at a time. UnitFirst: the first factor is 1 and needs no multiplication.
template <int Terms, bool UnitFirst, class T>
class VectorInput {
  using L = Lanes512<T>;

 public:
  VectorInput(const Affine<T>& input, std::size_t client, std::size_t begin) {
    for (int a = 0; a < Terms; ++a) {
      term_[a] = input.term[a].row(client) + begin;
      factor_[a] = L::spread(input.coefficient[a]);
    }
  }
  [[nodiscard]] typename L::Vector at(std::size_t j, typename L::Mask lanes) const {
    auto p = L::load(lanes, term_[0] + j);
    if constexpr (!UnitFirst) p = L::multiply(factor_[0], p);
    for (int a = 1; a < Terms; ++a) p = L::add(p, L::multiply(factor_[a], L::load(lanes, term_[a] + j)));
    return p;
  }

 private:
  const T* term_[Terms];
  typename L::Vector factor_[Terms];
};

// Every lane remembers its largest key and the group of four vectors in which that was first seen; the group is searched at the end.
template <int Terms, bool UnitFirst, class T>
[[nodiscard]] inline std::size_t first_largest(const ClientPass<T>& pass, std::size_t begin, std::size_t n) {
  using L = Lanes512<T>;
  using Mask = typename L::Mask;
  constexpr std::size_t kWidth = L::kWidth, kGroup = 4 * kWidth;
  constexpr Mask kAll = static_cast<Mask>(~0u);
  const VectorInput<Terms, UnitFirst, T> input(*pass.input, pass.client, begin);
  T* state = pass.state == nullptr ? nullptr : pass.state + begin;
  __m512i best = L::spread_key(0), where = L::spread_key(0), group = L::spread_key(0);
  const auto key_at = [&](std::size_t j, Mask lanes) {
    const auto p = input.at(j, lanes);
    if (state != nullptr) L::store(lanes, state + j, p);
    return L::keys(p);
  };
  const auto compare = [&](__m512i key) {
    const Mask above = L::key_above(key, best);
    best = L::choose(above, best, key);
    where = L::choose(above, where, group);
    group = L::add_keys(group, L::spread_key(1));
  };
  std::size_t j = 0;
  for (; j + kGroup <= n; j += kGroup) {
    const __m512i low = L::larger(key_at(j, kAll), key_at(j + kWidth, kAll));
    const __m512i high = L::larger(key_at(j + 2 * kWidth, kAll), key_at(j + 3 * kWidth, kAll));
    compare(L::larger(low, high));
  }
  if (j < n) {
    __m512i key = L::spread_key(0);
    for (; j < n; j += kWidth) key = L::larger(key, key_at(j, first_lanes<T>(n - j)));
    compare(key);
  }

  const __m512i largest = join_lanes<T>(best, [](__m512i a, __m512i b) { return L::larger(a, b); });
  const __m512i others = L::spread_key(~Key<T>{0});
  const __m512i groups =
      join_lanes<T>(L::choose(L::key_equal(best, largest), others, where), [](__m512i a, __m512i b) { return L::smaller(a, b); });
  const std::size_t first = static_cast<std::size_t>(L::first(groups)) * kGroup;
  for (std::size_t at = first; at < n; at += kWidth) {
    const Mask lanes = first_lanes<T>(n - at);
    const auto p = state != nullptr ? L::load(lanes, state + at) : input.at(at, lanes);
    const Mask hit = static_cast<Mask>(L::key_equal(L::keys(p), largest) & lanes);  // lanes past the end are zero
    if (hit != 0) return at + static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(hit)));
  }
  return first;
}
#else
template <int, bool, class T>
[[nodiscard]] inline std::size_t first_largest(const ClientPass<T>& pass, std::size_t begin, std::size_t n) {
  alignas(64) T buffer[kTile];
  Key<T> best = 0;
  std::size_t where = 0;
  for (std::size_t first = 0; first < n; first += kTile) {
    const std::size_t count = std::min(kTile, n - first);
    const T* p = pass.tile(begin + first, count, buffer);
    Key<T> largest = 0;
    for (std::size_t j = 0; j < count; ++j) largest = std::max(largest, magnitude_key(p[j]));
    if (largest <= best) continue;
    best = largest;
    std::size_t j = 0;
    while (j + 1 < count && magnitude_key(p[j]) != best) ++j;
    where = first + j;
  }
  return where;
}
#endif

// Evaluates the segment into the state and finds its largest entry.
template <class T>
[[nodiscard]] inline Largest<T> find_largest(const ClientPass<T>& pass, std::size_t begin, std::size_t n) {
  std::size_t at = 0;
  const bool unit = pass.input->coefficient[0] == T(1);
  switch (pass.input->num_terms) {
    case 1: at = unit ? first_largest<1, true>(pass, begin, n) : first_largest<1, false>(pass, begin, n); break;
    case 2: at = unit ? first_largest<2, true>(pass, begin, n) : first_largest<2, false>(pass, begin, n); break;
    case 3: at = first_largest<3, false>(pass, begin, n); break;
    default: at = first_largest<4, false>(pass, begin, n); break;
  }
  const std::size_t position = begin + at;
  return {position, pass.state != nullptr ? pass.state[position] : pass.input->at(pass.client, position)};
}

}  // namespace fl::cpu
