// Sparsifying by a rule on each element: keeps the entries where keep(p, segment) holds, in one pass over memory.
//
// A tile is evaluated into the state row (or into L1 where there is no state), compared a vector at a time into bit masks, and only
// where bits are set are positions, values and the state of what was sent written. 12 bytes per parameter for p = e + gamma*g.
#pragma once

#include <cstddef>
#include <span>

#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/ops/cpu/entries.hpp"
#include "fl_core/ops/op_types.hpp"

namespace fl::cpu {

template <class Keep, class T>
concept MagnitudeBound = requires(const Keep& keep, std::size_t segment) {
  { keep.bound(segment) } -> std::convertible_to<T>;
};

// words[w] bit i = keep(p[64w + i])
template <class T, class Keep>
inline void mask_tile(const T* p, std::size_t count, Keep keep, std::size_t segment, std::uint64_t* words) {
  if constexpr (MagnitudeBound<Keep, T>) {
    const T bound = keep.bound(segment);
    for (std::size_t j = 0; j < count; j += 64) words[j / 64] = mask_at_least(p + j, count - j, bound);
  } else {
    for (std::size_t j = 0; j < count; j += 64)
      words[j / 64] = mask_if(p + j, count - j, [keep, segment](T x) { return keep(x, segment); });
  }
}

// keep(T p, std::size_t segment) -> bool; out: [K] payloads, cleared.
template <class T, class Keep>
void select_rows(const Exec&, const Affine<T>& input, const Scope& scope, Keep keep, WireValue wire, const StateWrite<T>& state,
                 std::span<Payload<T>* const> out) {
  alignas(64) T buffer[kTile];
  std::uint64_t words[kMaskWords];
  for (std::size_t k = 0; k < input.clients(); ++k) {
    const ClientPass<T> pass(input, state, k);
    EntryWriter<T> writer(*out[k], wire, scope.segments.size());
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const Segment& segment = scope.segments[s];
      const std::size_t first = writer.count();
      for (std::size_t begin = segment.begin; begin < segment.end; begin += kTile) {
        const std::size_t count = std::min(kTile, segment.end - begin);
        const T* p = pass.tile(begin, count, buffer);
        mask_tile(p, count, keep, s, words);
        writer.reserve(count);
        writer.append_tile(pass, words, begin, count, p);
      }
      writer.finish_segment(s, first);
    }
    writer.close();
  }
}

}  // namespace fl::cpu
