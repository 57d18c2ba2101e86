#include <vector>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/chosen.cuh"
#include "fl_core/ops/cuda/plan.cuh"
#include "fl_core/ops/cuda/ternary.cuh"

namespace fl::cuda {
namespace {

// One warp per client and segment. Magnitudes are added in ascending order, as on the CPU: lanes fetch 32 and every lane adds them all.
template <class T>
__global__ void ternarise(ScopePlan plan, StateWrite<T> state, LevelFormat format, std::size_t num_clients, const std::size_t* num_sent,
                          const PayloadRow<T>* rows) {
  const std::size_t pieces = num_clients * plan.num_segments;
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const std::size_t k = piece / plan.num_segments, s = piece % plan.num_segments;
    const PayloadRow<T>& row = rows[k];
    const std::size_t first = first_from(row.index, num_sent[k], plan.segment[s].begin), count = row.counts[s];
    double sum = 0;
    for (std::size_t base = 0; base < count; base += kWarp) {
      const double mine = base + lane < count ? fabs(static_cast<double>(row.value[first + base + lane])) : 0.0;
      const int here = static_cast<int>(count - base < kWarp ? count - base : kWarp);
      for (int i = 0; i < here; ++i) sum += __shfl_sync(kAllLanes, mine, i);
    }
    const T scale = count > 0 ? static_cast<T>(sum / static_cast<double>(count)) : T(0);
    if (lane == 0) row.scale[s] = scale;
    auto* sign = reinterpret_cast<std::int8_t*>(row.levels);
    for (std::size_t i = first + lane; i < first + count; i += kWarp) {
      const T p = row.value[i];
      sign[i] = p < T(0) ? 0 : 1;
      if (state.rule == StateRule::residual) state.out.row(k)[row.index[i]] = p - level_value(format, sign[i], scale);
    }
  }
}

}  // namespace

template <class T>
void ternarise_rows(const Exec& exec, const Scope& scope, const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  const LevelFormat format = sign_format();
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  std::vector<std::size_t> num_sent;
  num_sent.reserve(messages.size());
  for (Payload<T>* message : messages) {
    message->level_bytes.resize_for_overwrite(message->num_sent);
    message->scale.resize_for_overwrite(plan.num_segments);
    num_sent.push_back(message->num_sent);
  }
  Launch(exec, "ternarise_rows", blocks_for(messages.size() * plan.num_segments * kWarp))(
      ternarise<T>, plan, state, format, messages.size(), upload(exec, std::span<const std::size_t>(num_sent), frame),
      upload_rows(exec, messages, frame));
  for (Payload<T>* message : messages) {
    message->values = WireValue::levels;
    message->level_format = format;
    message->level_width = LevelWidth::w8;
    message->value.resize_discard(0);
  }
}

// Declared in fl_core/ops/ternary_top_k.hpp.
template <class T>
FL_API void ternary_top_k_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k,
                               const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  // ternarise_rows writes the residual of all that is sent.
  const SentState sent = state.rule == StateRule::residual ? SentState::left : SentState::settled;
  largest_rows(exec, input, scope, k, TieRule::lowest_index, kNativeWire<T>, state, sent, out);
  ternarise_rows(exec, scope, state, out);
}
template FL_API void ternary_top_k_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const std::uint32_t>,
                                               const StateWrite<float>&, std::span<Payload<float>* const>);
template FL_API void ternary_top_k_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const std::uint32_t>,
                                                const StateWrite<double>&, std::span<Payload<double>* const>);

template void ternarise_rows<float>(const Exec&, const Scope&, const StateWrite<float>&, std::span<Payload<float>* const>);
template void ternarise_rows<double>(const Exec&, const Scope&, const StateWrite<double>&, std::span<Payload<double>* const>);

}  // namespace fl::cuda
