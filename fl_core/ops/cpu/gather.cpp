#include "fl_core/ops/cpu/gather.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/cpu/entries.hpp"
#include "fl_core/ops/cpu/philox_tile.hpp"
#include "fl_core/random/random.hpp"
#include "fl_core/random/subset_draws.hpp"

namespace fl::cpu {
namespace {

// Entries first .. last-1 lie in this segment; factor(i) scales entry i. With a state the segment is evaluated into it, and the entries are
// taken while their tile is in L1.
template <class T, class Factor>
void gather_segment(const ClientPass<T>& pass, const Segment& segment, std::size_t first, std::size_t last, Factor factor, WireValue wire,
                    Payload<T>& out) {
  const std::uint32_t* index = out.index.data();
  T* value = out.value.data();
  if (pass.state == nullptr) {
    for (std::size_t i = first; i < last; ++i) value[i] = wire_value(wire, factor(i) * pass.input->at(pass.client, index[i]));
    return;
  }
  std::size_t i = first;
  for (std::size_t begin = segment.begin; begin < segment.end; begin += kTile) {
    const std::size_t count = std::min(kTile, segment.end - begin);
    load_tile(*pass.input, pass.client, begin, count, pass.state + begin);
    for (; i < last && index[i] < begin + count; ++i) {
      T& p = pass.state[index[i]];
      value[i] = wire_value(wire, factor(i) * p);
      p = state_where_sent(pass.rule, p, value[i]);
    }
  }
}

// Marks t or, if it is marked already, j, as Floyd's algorithm does. The branch is rarely taken, and without it the place of every store
// would depend on what was loaded.
inline void mark(std::uint64_t* bits, std::size_t t, std::size_t j) {
  const std::uint64_t bit = std::uint64_t{1} << (t % 64);
  std::uint64_t& word = bits[t / 64];
  if ((word & bit) == 0) [[likely]]
    word |= bit;
  else
    bits[j / 64] |= std::uint64_t{1} << (j % 64);
}

// Marks what draw_subset() would take, with the words of many draws at a time. The marks lie all over the bits, so they are prefetched.
void mark_many(const RandomStream& stream, std::size_t n, std::size_t drawn, std::uint64_t* bits) {
  constexpr std::size_t kDraws = kTile / 2, kAhead = 32;
  std::uint32_t words[kRandomTile], drawn_at[kDraws + kAhead] = {};
  for (std::size_t first = 0; first < drawn; first += kDraws) {
    const std::size_t count = std::min(kDraws, drawn - first), last = n - drawn + first;
    const std::uint32_t* pair = random_tile(stream, 2 * first, 2 * count, words);
    for (std::size_t i = 0; i < count; ++i) drawn_at[i] = SubsetDraws::below(pair[2 * i], pair[2 * i + 1], last + i + 1);
    for (std::size_t i = 0; i < count; ++i) {
      __builtin_prefetch(bits + drawn_at[i + kAhead] / 64, 1);
      mark(bits, drawn_at[i], last + i);
    }
  }
}

// Marks k of n bits. bits: [ceil(n/64)]
void mark_subset(const RandomStream& stream, std::size_t n, std::size_t k, std::uint64_t* bits) {
  constexpr std::size_t kFew = 64;  // draws, which a batch of words would not pay for
  const std::size_t words = (n + 63) / 64, drawn = draws_the_others(n, k) ? n - k : k;
  std::memset(bits, 0, words * sizeof(std::uint64_t));
  if (drawn > kFew)
    mark_many(stream, n, drawn, bits);
  else
    draw_subset(stream, n, k, [bits](std::size_t t) {
      const std::uint64_t bit = std::uint64_t{1} << (t % 64);
      const bool is_new = (bits[t / 64] & bit) == 0;
      bits[t / 64] |= bit;
      return is_new;
    });
  if (!draws_the_others(n, k)) return;
  for (std::size_t w = 0; w < words; ++w) bits[w] = ~bits[w];
  if (n % 64 != 0) bits[words - 1] &= (std::uint64_t{1} << (n % 64)) - 1;
}

// Writes the positions of all marked bits of a segment, ascending; returns how many. Words without a mark, which are many in a sparse
// subset, are sorted out first without a branch.
std::size_t list_marked(const std::uint64_t* bits, const Segment& segment, std::uint32_t* out) {
  constexpr std::size_t kWords = 1024;
  std::uint32_t marked[kWords];
  std::size_t total = 0;
  const std::size_t words = (segment.size() + 63) / 64;
  for (std::size_t first = 0; first < words; first += kWords) {
    std::size_t count = 0;
    for (std::size_t w = first, last = std::min(words, first + kWords); w < last; ++w) {
      marked[count] = static_cast<std::uint32_t>(w);
      count += bits[w] != 0 ? 1 : 0;
    }
    for (std::size_t i = 0; i < count; ++i)
      total += append_positions(bits[marked[i]], static_cast<std::uint32_t>(segment.begin + std::size_t{64} * marked[i]), out + total);
  }
  return total;
}

// factor_of(k, s) returns the factors of the entries of segment s of client k.
template <class T, class FactorOf>
void gather_with(const Affine<T>& input, const Scope& scope, FactorOf factor_of, WireValue wire, const StateWrite<T>& state,
                 std::span<Payload<T>* const> out) {
  for (std::size_t k = 0; k < input.clients(); ++k) {
    Payload<T>& payload = *out[k];
    payload.positions = Positions::list;
    payload.values = wire;
    payload.value.resize_discard(payload.num_sent);
    const ClientPass<T> pass(input, state, k);
    std::size_t first = 0;
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      gather_segment(pass, scope.segments[s], first, first + payload.counts[s], factor_of(k, s), wire, payload);
      first += payload.counts[s];
    }
  }
}

}  // namespace

template <class T>
void gather_rows(const Exec&, const Affine<T>& input, const Scope& scope, std::span<const T> factor, WireValue wire,
                 const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  const auto factor_of = [factor](std::size_t, std::size_t s) { return [of_segment = factor[s]](std::size_t) { return of_segment; }; };
  gather_with(input, scope, factor_of, wire, state, out);
}

template <class T>
void gather_scaled_rows(const Exec&, const Affine<T>& input, const Scope& scope, std::span<const T> factor, WireValue wire,
                        const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  const std::size_t total = factor.size() / input.clients();
  const auto factor_of = [factor, total](std::size_t k, std::size_t) {
    return [of_client = factor.data() + k * total](std::size_t i) { return of_client[i]; };
  };
  gather_with(input, scope, factor_of, wire, state, out);
}

template <class T>
void list_rows(const Exec&, std::span<const std::uint32_t> counts, std::span<const std::uint32_t> index, std::span<Payload<T>* const> out) {
  const std::size_t total = index.size() / out.size();
  for (std::size_t k = 0; k < out.size(); ++k) {
    Payload<T>& payload = *out[k];
    payload.positions = Positions::list;
    payload.num_sent = total;
    payload.counts.resize_discard(counts.size());
    payload.index.resize_discard(total);
    std::ranges::copy(counts, payload.counts.data());
    std::ranges::copy(index.subspan(k * total, total), payload.index.data());
  }
}

template <class T>
void random_subset_rows(const Exec& exec, const Scope& scope, std::span<const std::uint32_t> k, const SubsetDraw& draw,
                        std::span<Payload<T>* const> out) {
  std::size_t total = 0, largest = 0;
  for (std::size_t s = 0; s < k.size(); ++s) {
    total += k[s];
    largest = std::max(largest, scope.segments[s].size());
  }
  Workspace::Frame frame(*exec.workspace);
  auto* bits = frame.take<std::uint64_t>((largest + 63) / 64);
  for (std::size_t client = 0; client < out.size(); ++client) {
    Payload<T>& payload = *out[client];
    payload.positions = Positions::list;
    payload.counts.resize_discard(k.size());
    payload.index.resize_discard(total + kPositionSlack);
    std::size_t at = 0;
    for (std::size_t s = 0; s < k.size(); ++s) {
      const Segment& segment = scope.segments[s];
      const auto layer = static_cast<std::uint32_t>(s);
      mark_subset(RandomStream(draw.key, draw.clients[client], draw.round, layer >> 16, layer & 0xFFFF), segment.size(), k[s], bits);
      at += list_marked(bits, segment, payload.index.data() + at);
      payload.counts[s] = k[s];
    }
    payload.num_sent = total;
    payload.index.resize_discard(total);
  }
}

template void gather_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const float>, WireValue,
                                 const StateWrite<float>&, std::span<Payload<float>* const>);
template void gather_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const double>, WireValue,
                                  const StateWrite<double>&, std::span<Payload<double>* const>);
template void gather_scaled_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const float>, WireValue,
                                        const StateWrite<float>&, std::span<Payload<float>* const>);
template void gather_scaled_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const double>, WireValue,
                                         const StateWrite<double>&, std::span<Payload<double>* const>);
template void list_rows<float>(const Exec&, std::span<const std::uint32_t>, std::span<const std::uint32_t>,
                               std::span<Payload<float>* const>);
template void list_rows<double>(const Exec&, std::span<const std::uint32_t>, std::span<const std::uint32_t>,
                                std::span<Payload<double>* const>);
template void random_subset_rows<float>(const Exec&, const Scope&, std::span<const std::uint32_t>, const SubsetDraw&,
                                        std::span<Payload<float>* const>);
template void random_subset_rows<double>(const Exec&, const Scope&, std::span<const std::uint32_t>, const SubsetDraw&,
                                         std::span<Payload<double>* const>);

}  // namespace fl::cpu
