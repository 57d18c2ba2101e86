#include "clients/host/memory_sum.hpp"

namespace fl {

template <class T>
MemorySum<T>::MemorySum(const Absence<T>& absence, std::span<const double> weights, bool is_running, ClientState<T>& clients,
                        ThreadPool& pool)
    : absence_(absence),
      weights_(weights),
      is_running_(is_running),
      clients_(clients),
      rows_(std::make_unique<RowSums<T>>(pool)),
      running_(is_running ? clients.P() : 0, 0.0) {}

template <class T>
void MemorySum<T>::begin_round(std::uint32_t round, std::span<const std::uint32_t> cohort) {
  if (!is_running_) return;
  add(round, cohort, -1, running_);
  const double aged = absence_.rule().factor(1);
  if (aged == 1) return;
  for (double& x : running_) x *= aged;
}

template <class T>
void MemorySum<T>::end_round(std::span<const std::uint32_t> cohort) {
  if (is_running_) add(0, cohort, 1, running_);
}

template <class T>
void MemorySum<T>::add(std::uint32_t round, std::span<const std::uint32_t> members, double sign, std::span<double> sum) const {
  std::vector<double> factor;
  for (const std::uint32_t client : members)
    factor.push_back(sign * weights_[client] * (round == 0 ? 1 : absence_.kept_share(round, client, clients_)));
  std::vector<std::uint32_t> rows;
  rows_->add(clients_.memory(), clients_.of_clients(absence_.rule().slot, members, rows), factor, sum);
}

template <class T>
std::vector<double> MemorySum<T>::value(std::uint32_t round, std::span<const double> replacement) const {
  if (is_running_) {
    std::vector<double> sum = running_;
    absence_.add_replacements(round, weights_, replacement, clients_, sum);
    return sum;
  }
  std::vector<double> sum(clients_.P(), 0.0);
  std::vector<std::uint32_t> members;  // other clients have no memory
  for (std::uint32_t client = 0; client < weights_.size(); ++client)
    if (clients_.acknowledged(client) > 0) members.push_back(client);
  if (clients_.reads_ahead() || absence_.rule().replaces()) {  // rows are in a file, or the rule replaces some
    for (const std::uint32_t client : members) absence_.add_memory(round, client, weights_[client], replacement, clients_, sum);
  } else {
    add(round, members, 1, sum);
  }
  return sum;
}

template <class T>
void MemorySum<T>::persist(Archive& archive) {
  if (!is_running_) return;
  archive.section("memory_sum");
  archive.array(std::span(running_));
}

template class MemorySum<float>;
template class MemorySum<double>;

}  // namespace fl
