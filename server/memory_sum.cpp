#include "server/memory_sum.hpp"

#include <algorithm>

namespace fl {

template <class T>
void MemorySum<T>::begin_round(std::uint32_t round, std::span<const std::uint32_t> cohort, StateTable<T>& state) {
  if (!is_running_) return;
  add(round, cohort, -1, state, state.server(slot()));
  const double aged = absence_.factor_of_a_round();
  if (aged == 1) return;
  for (double& x : state.server(slot())) x *= aged;
}

template <class T>
void MemorySum<T>::end_round(std::span<const std::uint32_t> cohort, StateTable<T>& state) {
  if (is_running_) add(0, cohort, 1, state, state.server(slot()));
}

template <class T>
void MemorySum<T>::add(std::uint32_t round, std::span<const std::uint32_t> clients, double sign, StateTable<T>& state,
                       std::span<double> sum) const {
  std::vector<double> factor;
  for (const std::uint32_t client : clients)
    factor.push_back(sign * weights_[client] * (round == 0 ? 1 : absence_.kept_share(round, client, state)));
  std::vector<std::uint32_t> rows;
  rows_->add(state.memory(), state.of_clients(absence_.slot(), clients, rows), factor, sum);
}

template <class T>
std::vector<double> MemorySum<T>::value(std::uint32_t round, StateTable<T>& state) const {
  std::vector<double> sum(state.P(), 0.0);
  if (is_running_) {
    std::ranges::copy(state.server(slot()), sum.begin());
    absence_.add_replacements(round, weights_, state, sum);
    return sum;
  }
  std::vector<std::uint32_t> clients;  // others have no memory
  for (std::uint32_t client = 0; client < weights_.size(); ++client)
    if (state.acknowledged(client) > 0) clients.push_back(client);
  if (state.reads_ahead() || absence_.replaces()) {  // rows in a file, or something else between them
    for (const std::uint32_t client : clients) absence_.add_memory(round, client, weights_[client], state, sum);
  } else {
    add(round, clients, 1, state, sum);
  }
  return sum;
}

template class MemorySum<float>;
template class MemorySum<double>;

}  // namespace fl
