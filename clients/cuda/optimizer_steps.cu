#include <algorithm>

#include "clients/cuda/optimizer_steps.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

// Adds the terms of the local update to the gradient: decay y + mu (y - w). Running averages take their own step, and their gradient
// becomes 0.
template <class T>
__global__ void complete_gradients(std::size_t clients, std::size_t P, T decay, T mu, const T* w, const T* rate, T* g, T* y) {
  for (std::size_t i = thread_index(); i < clients * P; i += num_threads()) {
    const std::size_t j = i - i / P * P;
    if (rate != nullptr && rate[j] > T(0)) {
      y[i] -= rate[j] * g[i];
      g[i] = T(0);
      continue;
    }
    if (decay > T(0)) g[i] += decay * y[i];
    if (mu > T(0)) g[i] += mu * (y[i] - w[j]);
  }
}

// Copies the running averages of y to `own`, or back.
template <class T>
__global__ void move_averages(std::size_t clients, std::size_t P, PlacedAverages<T> averages, bool back, T* own, T* y) {
  for (std::size_t i = thread_index(); i < clients * averages.S; i += num_threads()) {
    const std::size_t k = i / averages.S;
    T& entry = y[k * P + averages.at[i - k * averages.S]];
    if (back)
      entry = own[i];
    else
      own[i] = entry;
  }
}

// Copies rows of client state, in the order of vectors, to vectors in the order of layers, or back.
template <class T>
__global__ void move_states(std::size_t clients, BatchView<T> rows, const std::uint32_t* place, const std::uint32_t* place_of, bool back,
                            T* state) {
  for (std::size_t i = thread_index(); i < clients * rows.P; i += num_threads()) {
    const std::size_t k = i / rows.P, j = i - k * rows.P;
    T& entry = rows.row(place[k])[place_of == nullptr ? j : place_of[j]];
    if (back)
      entry = state[i];
    else
      state[i] = entry;
  }
}

}  // namespace

LayerTable in_order_of_layers(const LayerTable& layers, std::span<const std::uint32_t> begin) {
  LayerTable ordered = layers;
  if (begin.empty()) return ordered;
  for (Layer& layer : ordered.layers)
    if (layer.size() > 0) layer.begin = begin[layer.begin];
  std::ranges::stable_sort(ordered.layers, {}, &Layer::begin);
  return ordered;
}

template <class T>
OptimizerSteps<T>::OptimizerSteps(const Exec& exec, const OptimizerParts<T>& parts, const KeptStates<T>& kept, std::size_t clients,
                                  const T* w, const std::uint32_t* place, Workspace::Frame& frame)
    : parts_(parts),
      kept_(kept),
      clients_(clients),
      P_(parts.layers.size()),
      w_(w),
      place_(place),
      count_(clients),
      averages_(frame.take<T>(std::max<std::size_t>(clients * parts.averages.S, 1))),
      counts_(frame.take<T>(clients * kStepCountLength)) {
  for (std::size_t s = 0; s < parts.rule.num_states(); ++s) {
    T* state = frame.take<T>(clients * P_);
    if (kept.empty())
      FL_CUDA_CHECK(cudaMemsetAsync(state, 0, clients * P_ * sizeof(T), stream_of(exec)));
    else
      Launch(exec, "read_states", blocks_for(clients * P_))(move_states<T>, clients, kept.stored[s], place, parts.averages.place_of, false,
                                                            state);
    states_.push_back({state, nullptr, static_cast<std::uint32_t>(clients), P_, P_});
  }
  if (kept.empty()) return;
  Launch(exec, "read_counts", blocks_for(clients * kStepCountLength))(move_states<T>, clients, kept.stored_count, place, nullptr, false,
                                                                      counts_);
  std::vector<T> counts(clients * kStepCountLength);
  ::fl::copy_bytes(counts.data(), Device::cpu, counts_, Device::cuda, counts.size() * sizeof(T), exec.stream);
  for (std::size_t k = 0; k < clients; ++k) count_[k] = read_step_count(counts.data() + k * kStepCountLength);
}

template <class T>
void OptimizerSteps<T>::step(const Exec& exec, std::size_t clients, double gamma, T* g, T* y) {
  const std::size_t entries = clients * P_, own = clients * parts_.averages.S;
  Launch(exec, "complete_gradients", blocks_for(entries))(complete_gradients<T>, clients, P_, static_cast<T>(parts_.descent.weight_decay),
                                                          static_cast<T>(parts_.descent.proximal_mu), w_, parts_.averages.rate, g, y);
  Launch(exec, "keep_averages", blocks_for(own))(move_averages<T>, clients, P_, parts_.averages, false, averages_, y);
  const auto K = static_cast<std::uint32_t>(clients);
  std::vector<BatchView<T>> states;
  for (const BatchView<T>& state : states_) states.push_back(state.slice(0, K));
  for (std::size_t k = 0; k < clients; ++k) ++count_[k];
  parts_.rule.step(exec, {.count = std::span<const std::uint64_t>(count_).first(clients),
                          .gamma = gamma,
                          .layers = parts_.layers,
                          .w = {w_, nullptr, K, P_, 0},
                          .g = {g, nullptr, K, P_, P_},
                          .y = {y, nullptr, K, P_, P_},
                          .states = states});
  Launch(exec, "restore_averages", blocks_for(own))(move_averages<T>, clients, P_, parts_.averages, true, averages_, y);
}

template <class T>
void OptimizerSteps<T>::close(const Exec& exec) {
  if (kept_.empty()) return;
  for (std::size_t s = 0; s < states_.size(); ++s)
    Launch(exec, "write_states", blocks_for(clients_ * P_))(move_states<T>, clients_, kept_.shadow[s], place_, parts_.averages.place_of,
                                                            true, states_[s].data);
  std::vector<T> counts(clients_ * kStepCountLength);
  for (std::size_t k = 0; k < clients_; ++k) write_step_count(count_[k], counts.data() + k * kStepCountLength);
  ::fl::upload_bytes(counts_, counts.data(), counts.size() * sizeof(T), exec.stream);
  Launch(exec, "write_counts", blocks_for(counts.size()))(move_states<T>, clients_, kept_.shadow_count, place_, nullptr, true, counts_);
}

template class OptimizerSteps<float>;
template class OptimizerSteps<double>;

}  // namespace fl::cuda
