#include "clients/client_host.hpp"

#include <algorithm>

#include "fl_core/ops/scaled_sums.hpp"
#include "fl_core/round/own_statistics.hpp"

namespace fl {

template <class T>
ClientHost<T>::ClientHost(const RunSettings& run, AbsenceRule absence, bool runs_memory_sum, ClientState<T>& state,
                          const SharedState<T>& shared, BlockRunner<T>& runner, ThreadPool& pool)
    : run_(run),
      state_(state),
      shared_(shared),
      runner_(runner),
      absence_(std::move(absence)),
      memory_sum_(absence_, run.weights, runs_memory_sum, state, pool) {}

template <class T>
void ClientHost<T>::open_round(const RoundView<T>& round, const RoundOpening<T>& opening) {
  cohort_ = round.order.cohort;
  state_.open_round(cohort_, opening.next_cohort);
  memory_sum_.begin_round(round.order.round, cohort_);
  absence_.settle(round.order.round, cohort_, opening.replacement, state_);
  if (!run_.local_statistics) return;
  received_.assign(round.reference.begin(), round.reference.end());
  clear_statistics(run_.statistics, received_.data());
}

// If statistics stay with the clients, no client sends any, and clients do not see those of the server's model (their mean, for measures).
// A gradient's entry is then exactly 0 - b with the statistic b of the minibatch, so that a client's own statistics depend only on its own
// values and the messages that it receives.
template <class T>
std::span<const ClientMessage<T>> ClientHost<T>::exchange(const RoundView<T>& round, int phase) {
  return runner_.exchange(run_.local_statistics ? RoundView<T>{round.run, round.order, received_} : round, phase);
}

template <class T>
void ClientHost<T>::skip_round(std::uint32_t round) {
  memory_sum_.begin_round(round, {});
}

template <class T>
std::span<const T> ClientHost<T>::statistics(std::uint32_t position) const {
  return run_.local_statistics ? std::span<const T>() : runner_.statistics(position);
}

// Moves statistics that stay with the clients according to the clients' work, whether or not their messages have content.
template <class T>
void ClientHost<T>::close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) {
  for (std::uint32_t i = 0; run_.local_statistics && i < cohort_.size(); ++i)
    if (delivered[i] != 0) std::ranges::copy(runner_.statistics(i), state_.stored(kOwnStatistics, i, 1).row(0));
  runner_.acknowledge(round, delivered);
  memory_sum_.end_round(cohort_);
}

template <class T>
std::span<const T> ClientHost<T>::error_memory(std::uint32_t position) {
  const std::string& slot = absence_.rule().slot;
  return state_.memory() == Device::cuda ? state_.peek(slot, cohort_[position]) : state_.of_client(slot, cohort_[position]);
}

template <class T>
void ClientHost<T>::persist(Archive& archive) {
  state_.persist(archive);
  memory_sum_.persist(archive);
}

template <class T>
void ClientHost<T>::Probe::add_statistics_moves(std::span<const std::uint8_t> delivered, std::span<double> mean) {
  std::vector<double> move(mean.size());
  for (std::uint32_t i = 0; i < host_.cohort_.size(); ++i) {
    if (delivered[i] == 0) continue;
    read_statistics_move(i, move);
    add_scaled<double>(host_.run_.weights[host_.cohort_[i]], std::span<const double>(move), mean);
  }
}

template <class T>
void ClientHost<T>::Probe::read_statistics_move(std::uint32_t position, std::span<double> move) {
  const std::span<const T> now = host_.runner_.statistics(position);
  std::vector<T> before(move.size());
  std::ranges::fill(move, 0.0);
  read_own_statistics<T>(host_.state_, host_.shared_, host_.cohort_[position], host_.state_.stored(kOwnStatistics, position, 1).row(0),
                         before.data());
  std::ranges::transform(now, before, move.begin(), [](T a, T b) { return static_cast<double>(a) - static_cast<double>(b); });
}

template <class T>
void ClientHost<T>::Probe::put_own_statistics(std::uint32_t client, T* x) {
  if (!host_.run_.local_statistics) return;
  std::vector<T> own(host_.shared_.slot(kInitialStatistics).size());
  const std::span<const T> stored = host_.state_.peek(kOwnStatistics, client);
  const std::vector<T> zeros(stored.empty() ? own.size() : 0);  // peek() is empty if all are 0
  read_own_statistics(host_.state_, host_.shared_, client, stored.empty() ? zeros.data() : stored.data(), own.data());
  scatter_statistics(host_.run_.statistics, own.data(), x);
}

template class ClientHost<float>;
template class ClientHost<double>;

}  // namespace fl
