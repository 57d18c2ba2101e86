#include "clients/host/absence.hpp"

#include <algorithm>
#include <vector>

#include "fl_core/ops/scaled_sums.hpp"

namespace fl {
namespace {

template <class T>
std::uint32_t missed_by(std::uint32_t client, std::uint32_t round, const ClientState<T>& clients) {
  return missed_rounds(round, clients.acknowledged(client));
}

// Calls change(e) for a member's memory e [P], in place or, if a GPU's own memory holds it, on a copy that is then written back.
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
void Absence<T>::settle(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const T> replacement,
                        ClientState<T>& clients) const {
  if (rule_.state == AbsentState::keep) return;
  for (const std::uint32_t client : cohort) {
    const std::uint32_t missed = missed_by(client, round, clients);
    if (missed == 0) continue;
    change_memory(clients, rule_.slot, client, [&](std::span<T> e) {
      const T scale = static_cast<T>(rule_.factor(missed));
      for (T& x : e) x *= scale;
      if (rule_.replaces()) std::ranges::copy(replacement, e.begin());
    });
  }
}

template <class T>
void Absence<T>::add_memory(std::uint32_t round, std::uint32_t client, double weight, std::span<const double> replacement,
                            ClientState<T>& clients, std::span<double> sum) const {
  const std::uint32_t missed = missed_by(client, round, clients);
  add_scaled(weight * rule_.factor(missed), clients.peek(rule_.slot, client), sum);
  if (rule_.replaces() && missed > 0) add_scaled(weight, replacement, sum);
}

template <class T>
double Absence<T>::kept_share(std::uint32_t round, std::uint32_t client, const ClientState<T>& clients) const {
  return rule_.factor(missed_by(client, round, clients));
}

template <class T>
void Absence<T>::add_replacements(std::uint32_t round, std::span<const double> weights, std::span<const double> replacement,
                                  const ClientState<T>& clients, std::span<double> sum) const {
  if (!rule_.replaces()) return;
  double weight = 0;
  for (std::uint32_t client = 0; client < weights.size(); ++client)
    if (missed_by(client, round, clients) > 0) weight += weights[client];
  add_scaled(weight, replacement, sum);
}

template class Absence<float>;
template class Absence<double>;

}  // namespace fl
