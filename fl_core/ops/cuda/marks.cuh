// Sparse messages from bit marks: how every sparsifier ends on the GPU.
//
// A first pass over memory evaluates the input, leaves p in the state row and marks what is kept, one bit per element. What follows reads
// the marks (1/32 of the vector) and touches only the entries that are kept: marks are counted per tile, the counts scanned, and each
// tile writes its entries at their place, ascending. Positions depend on the marks alone, never on which block came first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "fl_core/ops/cuda/plan.cuh"

namespace fl::cuda {

inline constexpr std::size_t kMarkWords = kReduceTile / 32;  // words of a tile; bits beyond its elements are 0

// A tile that keeps few entries needs less memory for a list than for marks: n values p, then their n places from the tile's first element,
// both in the room of the tile's marks and ascending. Up to this many are listed.
template <class T>
inline constexpr unsigned kMostListed = static_cast<unsigned>(kMarkWords * sizeof(std::uint32_t) / (sizeof(T) + sizeof(std::uint16_t)));
// T: const where it is read
template <class T>
struct TileList {
  using Offset = std::conditional_t<std::is_const_v<T>, const std::uint16_t, std::uint16_t>;
  T* value;
  Offset* place;
  template <class Word>
  FL_HD TileList(Word* room, std::size_t n) : value(reinterpret_cast<T*>(room)), place(reinterpret_cast<Offset*>(value + n)) {}
};

// mark: [K, num_tiles, kMarkWords]. Fills counts, index and value of the payloads and settles the state of what is sent; where there is a
// state, its rows hold p. Waits for the counts, because they decide how much memory a message takes.
template <class T>
FL_API void send_marked(const Exec& exec, const Affine<T>& input, const ScopePlan& plan, const std::uint32_t* mark, WireValue wire,
                        const StateWrite<T>& state, std::span<Payload<T>* const> out, Workspace::Frame& frame);

extern template void send_marked<float>(const Exec&, const Affine<float>&, const ScopePlan&, const std::uint32_t*, WireValue,
                                        const StateWrite<float>&, std::span<Payload<float>* const>, Workspace::Frame&);
extern template void send_marked<double>(const Exec&, const Affine<double>&, const ScopePlan&, const std::uint32_t*, WireValue,
                                         const StateWrite<double>&, std::span<Payload<double>* const>, Workspace::Frame&);

// The same without values, which are left to others: positions alone, in ascending order. Every client has num_sent marks: nobody waits.
template <class T>
void list_marked(const Exec& exec, const ScopePlan& plan, const std::uint32_t* mark, std::uint32_t num_sent,
                 std::span<Payload<T>* const> out, Workspace::Frame& frame);

}  // namespace fl::cuda
