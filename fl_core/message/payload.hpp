// The output of an operator for one client and one channel, before encoding: positions x values, segment by segment.
//
//   positions  all     one value for each parameter of the segments            (identity, quantisers, sign)
//              list    ascending parameter indices, `counts[s]` per segment    (sparsifiers)
//              factors no positions: every segment is a matrix [n,m] and c = L R^T of rank counts[s]    (low rank; raw native values)
//                      `value` holds L [n,r], then R [m,r], row-major; `factor_entry` is one number of the product
//   values     raw     floating point in a wire format (fp64, fp32, fp16, bf16), already rounded to it
//              levels  integers and scales per segment; `level_value` turns them into numbers, here and at the receiver
// A message may have a second message attached, `rest`: the message then stands for the sum of the two (operators around operators).
// Excluded tensors (see Scope) travel in `excluded`, raw, in the scenario's precision.
//
// The transmitted numbers may be a code from which the receiver computes the entries (Compressor::reconstruct: DRIVE sends the signs of a
// rotated vector). This payload then holds the entries, and on_wire() is encoded and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/message/level_format.hpp"

namespace fl {

enum class Positions : std::uint8_t { all, list, factors };
enum class WireValue : std::uint8_t { fp64, fp32, fp16, levels, bf16 };
[[nodiscard]] constexpr int bits_of(WireValue format) {
  switch (format) {
    case WireValue::fp64: return 64;
    case WireValue::fp32: return 32;
    case WireValue::fp16:
    case WireValue::bf16: return 16;
    case WireValue::levels: return 0;
  }
  return 0;
}
template <class T>
inline constexpr WireValue kNativeWire = sizeof(T) == sizeof(float) ? WireValue::fp32 : WireValue::fp64;

template <class T>
struct Payload {
  Positions positions = Positions::all;
  WireValue values = kNativeWire<T>;
  LevelFormat level_format;
  LevelWidth level_width = LevelWidth::w8;
  bool silent = false;     // the client sends nothing in this phase except a header
  std::size_t length = 0;  // elements of the vector that this message describes (P, or a phase's own length)

  Buffer<std::uint32_t> counts;   // [S] entries kept per segment (list), ranks (factors)
  Buffer<std::uint32_t> index;    // [num_sent] positions in 0 .. length-1, ascending (list only)
  Buffer<T> value;                // [num_sent] raw values
  Buffer<std::byte> level_bytes;  // [num_sent] levels in level_width
  Buffer<T> scale;                // [S, scales_per_segment] (levels only); decode() omits rows of segments without entries
  Buffer<T> excluded;             // values of excluded tensors, in order
  std::size_t num_sent = 0;       // entries in index/value/levels
  std::unique_ptr<Payload> rest;  // usually null; has no rest and no excluded values of its own

  template <class L>
  [[nodiscard]] L* levels() {
    return reinterpret_cast<L*>(level_bytes.data());
  }
  template <class L>
  [[nodiscard]] const L* levels() const {
    return reinterpret_cast<const L*>(level_bytes.data());
  }
  [[nodiscard]] std::int32_t level(std::size_t i) const {
    switch (level_width) {
      case LevelWidth::w8: return levels<std::int8_t>()[i];
      case LevelWidth::w16: return levels<std::int16_t>()[i];
      case LevelWidth::w32: return levels<std::int32_t>()[i];
    }
    return 0;
  }
  // Returns the number of elements sent, including excluded tensors.
  [[nodiscard]] std::size_t elements() const { return silent ? 0 : num_sent + excluded.size() + (rest != nullptr ? rest->elements() : 0); }
  [[nodiscard]] const Payload& on_wire() const { return code_.is_used ? *code_.payload : *this; }
  // Returns another payload, cleared, that travels in place of this one.
  [[nodiscard]] Payload& code() {
    if (code_.payload == nullptr) code_.payload = std::make_unique<Payload>();
    code_.is_used = true;
    if (index.device() != Device::cpu) code_.payload->place_on(index.device());
    code_.payload->clear(length);
    return *code_.payload;
  }
  // Returns whether the positions of a list do not travel, because the receiver derives counts and index (Compressor::known_levels).
  [[nodiscard]] bool has_known_positions() const { return code_.leaves_positions_out; }
  void set_known_positions(bool are_known) { code_.leaves_positions_out = are_known; }
  // Copies the excluded values to the code as well, if there is one. `device`, which wrote them, copies in the order of its stream.
  void share_excluded(Device device, void* stream) {
    if (!code_.is_used) return;
    code_.payload->place_on(excluded.device());
    code_.payload->excluded.resize_discard(excluded.size());
    copy_bytes(code_.payload->excluded.data(), device, excluded.data(), device, excluded.size() * sizeof(T), stream);
  }

  // Moves the buffers to an operator's device. If they were on another device, their contents are lost. The operations of each device call
  // this. Managed memory serves every device. The host reads the counts of GPU messages in every round, so they are pinned and need no
  // copy.
  void place_on(Device device) {
    if (index.device() == device || index.device() == Device::managed) return;
    counts = Buffer<std::uint32_t>(0, device == Device::cpu ? Device::cpu : Device::pinned);
    index = Buffer<std::uint32_t>(0, device);
    value = Buffer<T>(0, device);
    level_bytes = Buffer<std::byte>(0, device);
    scale = Buffer<T>(0, device);
    excluded = Buffer<T>(0, device);
  }
  // Resets the payload for another message of the same shape. Memory is kept.
  void clear(std::size_t new_length) {
    silent = false;
    code_.is_used = false;
    code_.leaves_positions_out = false;
    length = new_length;
    num_sent = 0;
    counts.resize_discard(0);
    index.resize_discard(0);
    value.resize_discard(0);
    level_bytes.resize_discard(0);
    scale.resize_discard(0);
    excluded.resize_discard(0);
    rest.reset();
  }

 private:
  struct Code {
    std::unique_ptr<Payload> payload;  // its memory is kept
    bool is_used = false;
    bool leaves_positions_out = false;
  };
  Code code_;
};

// Returns entry (i, j) of L R^T. Sender, receiver and aggregator sum in the same order. L: [n,rank], R: [m,rank]
template <class T>
[[nodiscard]] FL_HD inline T factor_entry(const T* L, const T* R, std::size_t rank, std::size_t i, std::size_t j) {
  T sum = 0;
  for (std::size_t r = 0; r < rank; ++r) sum += L[i * rank + r] * R[j * rank + r];
  return sum;
}

}  // namespace fl
