#include "fl_core/cpu/gather.hpp"
#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/gather.cuh"
#include "fl_core/cuda/payload_copy.hpp"
#include "fl_core/cuda/plan.cuh"
#include "fl_core/wire_value.hpp"

namespace fl::cuda {
namespace {

// state = p in all segments.
template <class T>
__global__ void evaluate_tiles(Affine<T> input, StateWrite<T> state, ScopePlan plan) {
  const std::size_t pieces = input.clients() * plan.num_tiles;
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t k = piece / plan.num_tiles;
    const Tile tile = tile_at(plan, piece % plan.num_tiles);
    T* row = state.out.row(k) + tile.begin;
    for (std::size_t i = threadIdx.x; i < tile.count; i += blockDim.x) row[i] = input.at(k, tile.begin + i);
  }
}

// One thread per entry; `largest` entries of each client are asked for, num_sent[k] exist.
template <class T>
__global__ void gather_entries(Affine<T> input, StateWrite<T> state, ScopePlan plan, const T* factor, WireValue wire,
                               const std::size_t* num_sent, std::size_t largest, const PayloadRow<T>* rows) {
  for (std::size_t piece = thread_index(); piece < input.clients() * largest; piece += num_threads()) {
    const std::size_t k = piece / largest, i = piece % largest;
    if (i >= num_sent[k]) continue;
    const std::size_t j = rows[k].index[i];
    T* row = state_row(state, k);
    const T p = row != nullptr ? row[j] : input.at(k, j);
    const T c = wire_value(wire, factor[segment_at(plan, j, FirstElement{})] * p);
    rows[k].value[i] = c;
    if (row != nullptr) row[j] = state_where_sent(state.rule, p, c);
  }
}

}  // namespace

template <class T>
void gather_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const T> factor, WireValue wire,
                 const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  std::vector<std::size_t> num_sent;
  num_sent.reserve(out.size());
  std::size_t largest = 0;
  for (Payload<T>* payload : out) {
    payload->positions = Positions::list;
    payload->values = wire;
    payload->value.resize_discard(payload->num_sent);
    num_sent.push_back(payload->num_sent);
    largest = std::max(largest, payload->num_sent);
  }
  const std::size_t K = input.clients();
  if (state.rule != StateRule::none) Launch(exec, "evaluate_tiles", K * plan.num_tiles)(evaluate_tiles<T>, input, state, plan);
  Launch(exec, "gather_entries", blocks_for(K * largest))(gather_entries<T>, input, state, plan, upload(exec, factor, frame), wire,
                                                          upload(exec, std::span<const std::size_t>(num_sent), frame), largest,
                                                          upload_rows(exec, out, frame));
}

template <class T>
void random_subset_rows(const Exec& exec, const Scope& scope, std::span<const std::uint32_t> k, const SubsetDraw& draw,
                        std::span<Payload<T>* const> out) {
  Workspace workspace;
  Exec host;
  host.workspace = &workspace;
  for (std::size_t client = 0; client < out.size(); ++client) {
    Payload<T> drawn;
    Payload<T>* drawn_row = &drawn;
    const SubsetDraw own{draw.key, draw.round, draw.clients.subspan(client, 1)};
    cpu::random_subset_rows(host, scope, k, own, std::span<Payload<T>* const>(&drawn_row, 1));
    Payload<T>& payload = *out[client];
    payload.place_on(Device::cuda);
    payload.positions = Positions::list;
    payload.num_sent = drawn.num_sent;
    copy_buffer(drawn.counts, payload.counts, exec.stream);
    copy_buffer(drawn.index, payload.index, exec.stream);
  }
}

#define FL_INSTANTIATE(T)                                                                                                        \
  template void gather_rows<T>(const Exec&, const Affine<T>&, const Scope&, std::span<const T>, WireValue, const StateWrite<T>&, \
                               std::span<Payload<T>* const>);                                                                    \
  template void random_subset_rows<T>(const Exec&, const Scope&, std::span<const std::uint32_t>, const SubsetDraw&,              \
                                      std::span<Payload<T>* const>);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
