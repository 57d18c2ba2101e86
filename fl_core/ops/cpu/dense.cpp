#include "fl_core/ops/cpu/dense.hpp"

#include <algorithm>
#include <cstddef>

#include "fl_core/message/wire_value.hpp"
#include "fl_core/ops/cpu/tile.hpp"

namespace fl::cpu {
namespace {

// value[j] = p[j] in the wire format; a loop for each format, so that all of them vectorise.
template <class T>
void round_tile(const T* __restrict p, std::size_t count, WireValue wire, T* __restrict value) {
  switch (wire) {
    case WireValue::fp16:
      for (std::size_t j = 0; j < count; ++j) value[j] = wire_value(WireValue::fp16, p[j]);
      return;
    case WireValue::bf16:
      for (std::size_t j = 0; j < count; ++j) value[j] = wire_value(WireValue::bf16, p[j]);
      return;
    case WireValue::fp32:
      for (std::size_t j = 0; j < count; ++j) value[j] = wire_value(WireValue::fp32, p[j]);
      return;
    default: std::copy(p, p + count, value);
  }
}

template <class T>
void write_state(const T* __restrict p, const T* __restrict value, std::size_t count, StateRule rule, T* __restrict state) {
  if (rule == StateRule::residual)
    for (std::size_t j = 0; j < count; ++j) state[j] = state_where_sent(StateRule::residual, p[j], value[j]);
  else
    std::fill(state, state + count, T(0));
}

// value: [size of the segments]
template <class T>
void send_segments(const Affine<T>& input, std::size_t k, const std::vector<Segment>& segments, WireValue wire, const StateWrite<T>& state,
                   T* value) {
  alignas(64) T p[kTile];
  T* row = state.rule == StateRule::none ? nullptr : state.out.row(k);
  for (const Segment& segment : segments) {
    for (std::size_t begin = segment.begin; begin < segment.end; begin += kTile) {
      const std::size_t count = std::min(kTile, segment.end - begin);
      load_tile(input, k, begin, count, p);
      round_tile(p, count, wire, value);
      if (row != nullptr) write_state(p, value, count, state.rule, row + begin);
      value += count;
    }
  }
}

[[nodiscard]] std::size_t total_size(const std::vector<Segment>& segments) {
  std::size_t total = 0;
  for (const Segment& segment : segments) total += segment.size();
  return total;
}

}  // namespace

template <class T>
void dense_rows(const Exec&, const Affine<T>& input, const Scope& scope, WireValue wire, const StateWrite<T>& state,
                std::span<Payload<T>* const> out) {
  const std::size_t total = total_size(scope.segments);
  for (std::size_t k = 0; k < input.clients(); ++k) {
    Payload<T>& payload = *out[k];
    payload.positions = Positions::all;
    payload.values = wire;
    payload.num_sent = total;
    payload.value.resize_discard(total);
    send_segments(input, k, scope.segments, wire, state, payload.value.data());
  }
}

template <class T>
void send_excluded(const Exec&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  const std::size_t total = total_size(scope.excluded);
  if (total == 0) return;
  for (std::size_t k = 0; k < input.clients(); ++k) {
    out[k]->excluded.resize_discard(total);
    send_segments(input, k, scope.excluded, kNativeWire<T>, state, out[k]->excluded.data());
    out[k]->share_excluded(Device::cpu, nullptr);
  }
}

template void dense_rows<float>(const Exec&, const Affine<float>&, const Scope&, WireValue, const StateWrite<float>&,
                                std::span<Payload<float>* const>);
template void dense_rows<double>(const Exec&, const Affine<double>&, const Scope&, WireValue, const StateWrite<double>&,
                                 std::span<Payload<double>* const>);
template void send_excluded<float>(const Exec&, const Affine<float>&, const Scope&, const StateWrite<float>&,
                                   std::span<Payload<float>* const>);
template void send_excluded<double>(const Exec&, const Affine<double>&, const Scope&, const StateWrite<double>&,
                                    std::span<Payload<double>* const>);

}  // namespace fl::cpu
