#include "fl_core/message/wire_value.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/dense.cuh"
#include "fl_core/ops/cuda/opened.cuh"
#include "fl_core/ops/cuda/plan.cuh"

namespace fl::cuda {
namespace {

enum class Target { value, excluded };

constexpr int kAhead = kReduceTile / kBlockThreads;  // elements of a thread: the tile at once
static_assert(kAhead * kBlockThreads == kReduceTile);

// value or excluded [offset ..] = p in the wire format, one block per tile.
template <class T>
__global__ void send_tiles(Affine<T> input, StateWrite<T> state, ScopePlan plan, WireValue wire, Target target, const PayloadRow<T>* rows) {
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    T* row = state_row(state, k);
    T* value = (target == Target::value ? rows[k].value : rows[k].excluded) + tile.offset;
    T p[kAhead];
    OpenedInput<T>(input, k).load(tile.begin + threadIdx.x, kBlockThreads, tile.begin + tile.count, p);
    FL_UNROLL
    for (int a = 0; a < kAhead; ++a) {
      const std::size_t i = threadIdx.x + static_cast<std::size_t>(a) * kBlockThreads;
      if (i >= tile.count) break;
      const T c = wire_value(wire, p[a]);
      value[i] = c;
      if (row != nullptr) row[tile.begin + i] = state_where_sent(state.rule, p[a], c);
    }
  }
}

}  // namespace

template <class T>
void dense_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, WireValue wire, const StateWrite<T>& state,
                std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  for (Payload<T>* payload : out) {
    payload->place_on(Device::cuda);
    payload->positions = Positions::all;
    payload->values = wire;
    payload->num_sent = plan.total;
    payload->value.resize_for_overwrite(plan.total);
  }
  Launch(exec, "dense_rows", input.clients() * plan.num_tiles)(send_tiles<T>, input, state, plan, wire, Target::value,
                                                               upload_rows(exec, out, frame));
}

template <class T>
void send_excluded(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                   std::span<Payload<T>* const> out) {
  if (scope.excluded.empty()) return;
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.excluded, frame);
  for (Payload<T>* payload : out) {
    payload->place_on(Device::cuda);
    payload->excluded.resize_for_overwrite(plan.total);
  }
  Launch(exec, "send_excluded", input.clients() * plan.num_tiles)(send_tiles<T>, input, state, plan, kNativeWire<T>, Target::excluded,
                                                                  upload_rows(exec, out, frame));
  for (Payload<T>* payload : out) payload->share_excluded(Device::cuda, exec.stream);
}

#define FL_INSTANTIATE(T)                                                                                                                  \
  template void dense_rows<T>(const Exec&, const Affine<T>&, const Scope&, WireValue, const StateWrite<T>&, std::span<Payload<T>* const>); \
  template void send_excluded<T>(const Exec&, const Affine<T>&, const Scope&, const StateWrite<T>&, std::span<Payload<T>* const>);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
