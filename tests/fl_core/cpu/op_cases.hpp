// Difficult inputs for operations, and plain loops that define the right results.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/message/wire_value.hpp"
#include "fl_core/random/random.hpp"

namespace fl::test {

inline const std::vector<std::size_t> kOddSizes = {1, 2, 3, 15, 16, 17, 63, 64, 65, 500, 2047, 2048, 2049, 40001, 100003};

// Distributions of a vector's numbers.
enum class Pattern { uniform, ties, zeros, constant, denormal, huge, sparse, layered, nan, infinite };
inline const std::vector<Pattern> kPatterns = {Pattern::uniform, Pattern::ties,   Pattern::zeros,   Pattern::constant, Pattern::denormal,
                                               Pattern::huge,    Pattern::sparse, Pattern::layered, Pattern::nan,      Pattern::infinite};

[[nodiscard]] inline const char* to_string(Pattern pattern) {
  constexpr const char* kNames[] = {"uniform", "ties", "zeros", "constant", "denormal", "huge", "sparse", "layered", "nan", "infinite"};
  return kNames[static_cast<std::size_t>(pattern)];
}
[[nodiscard]] inline const char* to_string(StateRule rule) {
  constexpr const char* kNames[] = {"none", "residual", "zero_where_sent"};
  return kNames[static_cast<std::size_t>(rule)];
}

template <class T>
T number(Pattern pattern, std::uint32_t word, std::size_t j) {
  const T u = RandomStream::to_uniform<T>(word) * 2 - 1;
  using Limits = std::numeric_limits<T>;
  switch (pattern) {
    case Pattern::uniform: return u;
    case Pattern::ties: return static_cast<T>(static_cast<int>(word % 7) - 3);
    case Pattern::zeros: return word % 2 == 0 ? T(0) : -T(0);
    case Pattern::constant: return T(0.25);
    case Pattern::denormal: return u * Limits::min();
    case Pattern::huge: return u * Limits::max() / 8;
    case Pattern::sparse: return word % 50 == 0 ? u : T(0);
    case Pattern::layered: return (j / 1000) % 3 == 0 ? u : u * T(1e-6);
    case Pattern::nan: return word % 11 == 0 ? Limits::quiet_NaN() : u;
    case Pattern::infinite: return word % 13 == 0 ? Limits::infinity() * (word % 2 == 0 ? 1 : -1) : u;
  }
  return 0;
}

// K clients with two vectors each, a state beside them, and room for the messages.
template <class T>
struct TestBlock {
  std::uint32_t K;
  std::size_t P;
  std::vector<T> e, g, state;
  std::vector<Payload<T>> payloads;
  std::vector<Payload<T>*> messages;
  Workspace workspace;
  Exec exec;

  TestBlock(std::uint32_t K_, std::size_t P_, Pattern pattern, std::uint32_t salt = 0)
      : K(K_), P(P_), e(K_ * P_), g(K_ * P_), state(K_ * P_, T(-7)), payloads(K_) {
    for (std::uint32_t k = 0; k < K; ++k) {
      for (std::size_t j = 0; j < P; ++j) {
        const std::uint64_t bits = hash64(99 + salt, std::uint64_t{k} << 40 | j);
        e[k * P + j] = number<T>(pattern, static_cast<std::uint32_t>(bits), j);
        g[k * P + j] = number<T>(pattern, static_cast<std::uint32_t>(bits >> 32), j);
      }
      payloads[k].clear(P);
      messages.push_back(&payloads[k]);
    }
    exec.workspace = &workspace;
  }
  [[nodiscard]] BatchView<T> view(std::vector<T>& data) { return {data.data(), nullptr, K, P, P}; }
  // e, or e + 0.5 g
  [[nodiscard]] Affine<T> input(int terms) {
    Affine<T> input;
    input.add(T(1), view(e));
    if (terms > 1) input.add(T(0.5), view(g));
    if (terms > 2) input.add(T(-0.25), view(e));
    if (terms > 3) input.add(T(2), view(g));
    return input;
  }
  [[nodiscard]] std::span<Payload<T>* const> out() { return messages; }
};

template <class T>
std::vector<T> evaluate(const Affine<T>& input) {
  std::vector<T> p;
  for (std::size_t k = 0; k < input.clients(); ++k)
    for (std::size_t j = 0; j < input.size(); ++j) p.push_back(input.at(k, j));
  return p;
}

inline Scope model_scope(std::size_t P) {
  Scope scope;
  scope.P = P;
  scope.segments = {{0, P, P, 1}};
  return scope;
}
// Buckets of `size`; with `gaps` every third one is excluded.
inline Scope bucket_scope(std::size_t P, std::size_t size, bool gaps) {
  Scope scope;
  scope.kind = ScopeKind::bucket;
  scope.P = P;
  for (std::size_t begin = 0, i = 0; begin < P; begin += size, ++i) {
    const std::size_t end = std::min(P, begin + size);
    (gaps && i % 3 == 2 ? scope.excluded : scope.segments).push_back({begin, end, end - begin, 1});
  }
  return scope;
}

// The same bits, NaN included.
template <class T>
bool same(T a, T b) {
  return a == b ? std::signbit(a) == std::signbit(b) : (std::isnan(a) && std::isnan(b));
}
template <class T>
bool same(const T* a, const T* b, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j)
    if (!same(a[j], b[j])) return false;
  return true;
}

// Checks a sparsifier's results if `sent` [K,P] marks the entries that it keeps. Returns "" if message and state of all clients are right.
template <class T>
std::string check_sparse(const std::vector<T>& p, const std::vector<char>& sent, const Scope& scope, WireValue wire, StateRule rule,
                         const std::vector<Payload<T>>& payloads, const T* state) {
  const std::size_t P = scope.P;
  for (std::size_t k = 0; k < payloads.size(); ++k) {
    const Payload<T>& payload = payloads[k];
    const std::string who = "client " + std::to_string(k);
    if (payload.positions != Positions::list || payload.values != wire) return who + ": wrong kind of message";
    std::size_t at = 0;
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const std::size_t first = at;
      for (std::size_t j = scope.segments[s].begin; j < scope.segments[s].end; ++j) {
        const T x = p[k * P + j], c = wire_value(wire, x);
        const std::string where = who + " parameter " + std::to_string(j);
        if (sent[k * P + j] != 0) {
          if (at >= payload.num_sent || payload.index[at] != j) return where + ": not sent in its place";
          if (!same(payload.value[at], c)) return where + ": wrong value " + std::to_string(payload.value[at]);
          ++at;
        }
        if (rule == StateRule::none) continue;
        const T expected = sent[k * P + j] != 0 ? state_where_sent(rule, x, c) : x;
        if (!same(state[k * P + j], expected)) return where + ": wrong state " + std::to_string(state[k * P + j]);
      }
      if (payload.counts.size() != scope.segments.size() || payload.counts[s] != at - first) return who + ": wrong count";
    }
    if (at != payload.num_sent || payload.index.size() != at || payload.value.size() != at) return who + ": more entries than expected";
  }
  return "";
}

}  // namespace fl::test
