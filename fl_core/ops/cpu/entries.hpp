// The last step of sparsifiers on the CPU: marked elements of a tile become entries of a message and the client's new state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/message/wire_value.hpp"
#include "fl_core/ops/cpu/mask.hpp"

namespace fl::cpu {

// Where one client's fused pass reads from and writes to. The first pass over a segment evaluates the input and leaves p in the state
// row; every later pass reads it from there, so that the state may lie over a term of the input.
template <class T>
struct ClientPass {
  const Affine<T>* input = nullptr;
  std::size_t client = 0;
  StateRule rule = StateRule::none;
  T* state = nullptr;  // [P], null for StateRule::none
  bool evaluated = false;

  ClientPass(const Affine<T>& input_, const StateWrite<T>& write, std::size_t k)
      : input(&input_), client(k), rule(write.rule), state(write.rule == StateRule::none ? nullptr : write.out.row(k)) {}

  // p at begin .. begin+count-1; `buffer` [kTile] is used where nothing else holds it.
  [[nodiscard]] const T* tile(std::size_t begin, std::size_t count, T* buffer) const {
    if (state == nullptr) return view_tile(*input, client, begin, count, buffer);
    if (!evaluated) load_tile(*input, client, begin, count, state + begin);
    return state + begin;
  }
};

// Appends to the lists of one payload. Between open() and close() the lists are as large as their memory.
template <class T>
class EntryWriter {
 public:
  EntryWriter(Payload<T>& payload, WireValue wire, std::size_t num_segments) : payload_(payload), wire_(wire) {
    payload.positions = Positions::list;
    payload.values = wire;
    payload.counts.resize_discard(num_segments);
    payload.index.resize_discard(payload.index.capacity());
    payload.value.resize_discard(payload.value.capacity());
  }

  // Room for `extra` more entries.
  void reserve(std::size_t extra) {
    const std::size_t need = count_ + extra + kPositionSlack;
    if (need > payload_.index.size()) payload_.index.resize_keep(need);
    if (need > payload_.value.size()) payload_.value.resize_keep(need);
  }
  // Appends the marked elements of a tile with their values p, unrounded, and settles the state as if all of them were sent.
  // words: [ceil(count/64)]; p: the tile that begins at `begin`. Needs room for the tile.
  void append_tile(const ClientPass<T>& pass, const std::uint64_t* words, std::size_t begin, std::size_t count, const T* p) {
    std::uint32_t* index = payload_.index.data();
    const std::size_t first = count_;
    for (std::size_t w = 0; w * 64 < count; ++w)
      count_ += append_positions(words[w], static_cast<std::uint32_t>(begin + 64 * w), index + count_);
    T* value = payload_.value.data();
    for (std::size_t i = first; i < count_; ++i) value[i] = p[index[i] - begin];
    settle(pass, first, count_);
  }
  void append(std::uint32_t position, T p) {
    payload_.index[count_] = position;
    payload_.value[count_++] = p;
  }
  // State of entries first .. last-1 if they are sent.
  void settle(const ClientPass<T>& pass, std::size_t first, std::size_t last) const {
    if (pass.state == nullptr) return;
    const std::uint32_t* index = payload_.index.data();
    const T* value = payload_.value.data();
    for (std::size_t i = first; i < last; ++i) pass.state[index[i]] = state_where_sent(pass.rule, value[i], wire_value(wire_, value[i]));
  }
  // State of entries first .. last-1 if they are not sent after all.
  void restore(const ClientPass<T>& pass, std::size_t first, std::size_t last) const {
    if (pass.state == nullptr) return;
    for (std::size_t i = first; i < last; ++i) pass.state[payload_.index[i]] = payload_.value[i];
  }
  // Values from `first` on as the receiver sees them; the end of segment s.
  void finish_segment(std::size_t s, std::size_t first) {
    payload_.counts[s] = static_cast<std::uint32_t>(count_ - first);
    if (wire_ == kNativeWire<T>) return;
    T* value = payload_.value.data();
    for (std::size_t i = first; i < count_; ++i) value[i] = wire_value(wire_, value[i]);
  }
  void close() {
    payload_.num_sent = count_;
    payload_.index.resize_discard(count_);
    payload_.value.resize_discard(count_);
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  void truncate(std::size_t count) { count_ = count; }
  [[nodiscard]] std::uint32_t* index() { return payload_.index.data(); }
  [[nodiscard]] T* value() { return payload_.value.data(); }

 private:
  Payload<T>& payload_;
  WireValue wire_;
  std::size_t count_ = 0;
};

}  // namespace fl::cpu
