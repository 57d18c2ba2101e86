#include "clients/learning/optimizer_state.hpp"

#include <algorithm>
#include <utility>

namespace fl {

namespace {

constexpr const char* kStepsSlot = "local_optimizer.steps";

std::string state_slot(std::size_t s) { return "local_optimizer." + std::to_string(s); }

}  // namespace

template <class T>
std::vector<SlotSpec> optimizer_slots(const LocalOptimizer<T>& rule) {
  std::vector<SlotSpec> slots;
  if (rule.life() == StateLife::round) return slots;
  for (std::size_t s = 0; s < rule.num_states(); ++s)
    slots.push_back({.name = state_slot(s), .owner = SlotOwner::client, .double_buffered = true});
  slots.push_back({.name = kStepsSlot, .owner = SlotOwner::client, .double_buffered = true, .length = kStepCountLength});
  return slots;
}

template <class T>
KeptStates<T> kept_states(const LocalOptimizer<T>* rule, const ClientRound<T>& round, const ClientBlock<T>& block) {
  KeptStates<T> kept;
  if (rule == nullptr || rule->life() == StateLife::round) return kept;
  for (std::size_t s = 0; s < rule->num_states(); ++s) {
    kept.stored.push_back(block.stored(round.state, state_slot(s)));
    kept.shadow.push_back(block.shadow(round.state, state_slot(s)));
  }
  kept.stored_count = block.stored(round.state, kStepsSlot);
  kept.shadow_count = block.shadow(round.state, kStepsSlot);
  return kept;
}

template <class T>
ClientOptimizer<T>::ClientOptimizer(const LocalOptimizer<T>& rule, const GradientOracle<T>& oracle, const ClientRound<T>& round,
                                    const ClientBlock<T>& block, std::uint32_t k, Workspace::Frame& frame)
    : rule_(rule),
      layers_(oracle.model().layers()),
      averages_(oracle.running_averages()),
      P_(round.P()),
      own_averages_(frame.take<T>(std::max<std::size_t>(num_entries(oracle.running_averages()), 1))) {
  const KeptStates<T> kept = kept_states(&rule, round, block);
  for (std::size_t s = 0; s < rule.num_states(); ++s) {
    T* state = kept.empty() ? frame.take<T>(P_) : kept.shadow[s].row(k);
    if (kept.empty())
      std::fill_n(state, P_, T(0));
    else
      std::copy_n(kept.stored[s].row(k), P_, state);
    states_.push_back({state, nullptr, 1, P_, P_});
  }
  if (kept.empty()) return;
  count_ = read_step_count(kept.stored_count.row(k));
  kept_count_ = kept.shadow_count.row(k);
  write_step_count(count_, kept_count_);
}

template <class T>
void ClientOptimizer<T>::step(const Exec& exec, double gamma, const T* w, T* g, T* y) {
  ++count_;
  if (kept_count_ != nullptr) write_step_count(count_, kept_count_);
  gather_ranges<T>(averages_, y, own_averages_);
  rule_.step(exec, {.count = std::span(&count_, 1),
                    .gamma = gamma,
                    .layers = layers_,
                    .w = {w, nullptr, 1, P_, P_},
                    .g = {g, nullptr, 1, P_, P_},
                    .y = {y, nullptr, 1, P_, P_},
                    .states = states_});
  scatter_ranges<T>(averages_, own_averages_, y);
}

template std::vector<SlotSpec> optimizer_slots(const LocalOptimizer<float>&);
template std::vector<SlotSpec> optimizer_slots(const LocalOptimizer<double>&);
template KeptStates<float> kept_states(const LocalOptimizer<float>*, const ClientRound<float>&, const ClientBlock<float>&);
template KeptStates<double> kept_states(const LocalOptimizer<double>*, const ClientRound<double>&, const ClientBlock<double>&);
template class ClientOptimizer<float>;
template class ClientOptimizer<double>;

}  // namespace fl
