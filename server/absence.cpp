#include "server/absence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fl {
namespace {

// Rounds before `round` that the client missed; 0 for one that never took part.
template <class T>
std::uint32_t missed_rounds(std::uint32_t round, std::uint32_t client, const ClientState<T>& clients) {
  const std::uint32_t last = clients.acknowledged(client);
  return last == 0 ? 0 : round - last - 1;
}

// Calls change(e) for a member's memory e [P]: where it lies, or with a copy that goes back if a GPU's own memory holds it.
template <class T, class Change>
void change_memory(ClientState<T>& clients, const std::string& slot, std::uint32_t client, const Change& change) {
  if (clients.memory() != Device::cuda) return change(clients.of_client(slot, client));
  const std::span<const T> stored = clients.peek(slot, client);
  std::vector<T> e(stored.begin(), stored.end());
  if (stored.empty()) e.assign(clients.of_client(slot, client).size(), T(0));  // a client without state
  change(std::span<T>(e));
  clients.put(slot, client, e);
}

}  // namespace

template <class T>
double Absence<T>::factor(std::uint32_t missed) const {
  switch (rule_.state) {
    case AbsentState::keep: return 1;
    case AbsentState::decay: return std::pow(rule_.decay, missed);
    case AbsentState::drop:
    case AbsentState::server: return missed == 0 ? 1 : 0;
  }
  return 1;
}

template <class T>
void Absence<T>::settle(std::uint32_t round, std::span<const std::uint32_t> cohort, ClientState<T>& clients, ServerState<T>& state,
                        Ledger& ledger) const {
  if (rule_.state == AbsentState::keep) return;
  for (const std::uint32_t client : cohort) {
    const std::uint32_t missed = missed_rounds(round, client, clients);
    if (missed == 0) continue;
    std::size_t length = 0;
    change_memory(clients, rule_.slot, client, [&](std::span<T> e) {
      const T scale = static_cast<T>(factor(missed));
      for (T& x : e) x *= scale;
      length = e.size();
      if (rule_.state == AbsentState::server)
        std::ranges::transform(state.slot("absent_mean"), e.begin(), [](double x) { return static_cast<T>(x); });
    });
    if (rule_.state == AbsentState::server) ledger.count_down(client, (length - rule_.statistics) * sizeof(T) * 8, DownCause::absence);
  }
}

template <class T>
void Absence<T>::learn(std::span<const std::uint32_t> cohort, ClientState<T>& clients, ServerState<T>& state, Ledger& ledger) const {
  if (rule_.state != AbsentState::server) return;
  const std::span<double> mean = state.slot("absent_mean");
  std::ranges::fill(mean, 0.0);
  const std::size_t sent = mean.size() - rule_.statistics;
  const std::uint64_t bits = sent * sizeof(T) * 8;
  for (const std::uint32_t client : cohort) {
    const bool is_copied = clients.memory() == Device::cuda;
    const std::span<const T> e = is_copied ? clients.peek(rule_.slot, client) : clients.of_client(rule_.slot, client);
    for (std::size_t j = 0; j < e.size(); ++j) mean[j] += static_cast<double>(e[j]) / static_cast<double>(cohort.size());
    ledger.count_up(client, {.elements = sent, .published = static_cast<double>(bits), .entropy = static_cast<double>(bits), .bits = bits},
                    UpCause::absence);
  }
}

template <class T>
void Absence<T>::add_memory(std::uint32_t round, std::uint32_t client, double weight, ClientState<T>& clients, ServerState<T>& state,
                            std::span<double> sum) const {
  const std::uint32_t missed = missed_rounds(round, client, clients);
  const std::span<const T> e = clients.peek(rule_.slot, client);
  const double scale = weight * factor(missed);
  for (std::size_t j = 0; j < e.size(); ++j) sum[j] += scale * static_cast<double>(e[j]);
  if (rule_.state != AbsentState::server || missed == 0) return;
  const std::span<const double> mean = state.slot("absent_mean");
  for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += weight * mean[j];
}

template <class T>
double Absence<T>::kept_share(std::uint32_t round, std::uint32_t client, const ClientState<T>& clients) const {
  return factor(missed_rounds(round, client, clients));
}

template <class T>
void Absence<T>::add_replacements(std::uint32_t round, std::span<const double> weights, ClientState<T>& clients, ServerState<T>& state,
                                  std::span<double> sum) const {
  if (rule_.state != AbsentState::server) return;
  double weight = 0;
  for (std::uint32_t client = 0; client < weights.size(); ++client)
    if (missed_rounds(round, client, clients) > 0) weight += weights[client];
  const std::span<const double> mean = state.slot("absent_mean");
  for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += weight * mean[j];
}

template <class T>
double Absence<T>::residual_age(std::uint32_t round, std::span<const std::uint32_t> cohort, const ClientState<T>& clients) {
  double sum = 0, count = 0;
  for (const std::uint32_t client : cohort) {
    if (clients.acknowledged(client) == 0) continue;
    sum += round - clients.acknowledged(client);
    count += 1;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

template class Absence<float>;
template class Absence<double>;

}  // namespace fl
