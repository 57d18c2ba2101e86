#include "server/memory_sum.hpp"

#include <algorithm>

namespace fl {

template <class T>
void MemorySum<T>::begin_round(std::uint32_t round, std::span<const std::uint32_t> cohort, ClientState<T>& clients, ServerState<T>& state) {
  if (!is_running_) return;
  add(round, cohort, -1, clients, state.slot(slot()));
  const double aged = absence_.factor_of_a_round();
  if (aged == 1) return;
  for (double& x : state.slot(slot())) x *= aged;
}

template <class T>
void MemorySum<T>::end_round(std::span<const std::uint32_t> cohort, ClientState<T>& clients, ServerState<T>& state) {
  if (is_running_) add(0, cohort, 1, clients, state.slot(slot()));
}

template <class T>
void MemorySum<T>::add(std::uint32_t round, std::span<const std::uint32_t> members, double sign, ClientState<T>& clients,
                       std::span<double> sum) const {
  std::vector<double> factor;
  for (const std::uint32_t client : members)
    factor.push_back(sign * weights_[client] * (round == 0 ? 1 : absence_.kept_share(round, client, clients)));
  std::vector<std::uint32_t> rows;
  rows_->add(clients.memory(), clients.of_clients(absence_.slot(), members, rows), factor, sum);
}

template <class T>
std::vector<double> MemorySum<T>::value(std::uint32_t round, ClientState<T>& clients, ServerState<T>& state) const {
  std::vector<double> sum(clients.P(), 0.0);
  if (is_running_) {
    std::ranges::copy(state.slot(slot()), sum.begin());
    absence_.add_replacements(round, weights_, clients, state, sum);
    return sum;
  }
  std::vector<std::uint32_t> members;  // others have no memory
  for (std::uint32_t client = 0; client < weights_.size(); ++client)
    if (clients.acknowledged(client) > 0) members.push_back(client);
  if (clients.reads_ahead() || absence_.replaces()) {  // rows in a file, or something else between them
    for (const std::uint32_t client : members) absence_.add_memory(round, client, weights_[client], clients, state, sum);
  } else {
    add(round, members, 1, clients, sum);
  }
  return sum;
}

template class MemorySum<float>;
template class MemorySum<double>;

}  // namespace fl
