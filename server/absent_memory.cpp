#include "server/absent_memory.hpp"

#include <algorithm>
#include <limits>

namespace fl {

template <class T>
void AbsentMemory<T>::charge_returning(std::uint32_t round, std::span<const std::uint32_t> cohort, Ledger& ledger) const {
  if (!rule_.replaces()) return;
  for (const std::uint32_t client : cohort)
    if (missed_rounds(round, last_received_[client]) > 0) ledger.count_down(client, sent_ * sizeof(T) * 8, DownCause::absence);
}

template <class T>
void AbsentMemory<T>::receive(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const std::uint8_t> delivered) {
  for (std::size_t i = 0; i < cohort.size(); ++i)
    if (delivered[i] != 0) last_received_[cohort[i]] = round;
}

template <class T>
void AbsentMemory<T>::learn(std::span<const std::uint32_t> cohort, CohortRunner<T>& clients, ServerState<T>& state, Ledger& ledger) const {
  if (!rule_.replaces()) return;
  const std::span<double> mean = state.slot(kAbsentMean);
  std::ranges::fill(mean, 0.0);
  const std::uint64_t bits = sent_ * sizeof(T) * 8;
  std::size_t M = 0;
  for (std::uint32_t i = 0; i < cohort.size(); ++i) M += clients.has_error_memory(i) ? 1 : 0;
  for (std::uint32_t i = 0; i < cohort.size(); ++i) {
    if (!clients.has_error_memory(i)) continue;
    const std::span<const T> e = clients.error_memory(i);
    for (std::size_t j = 0; j < e.size(); ++j) mean[j] += static_cast<double>(e[j]) / static_cast<double>(M);
    ledger.count_up(cohort[i],
                    {.elements = sent_, .published = static_cast<double>(bits), .entropy = static_cast<double>(bits), .bits = bits},
                    UpCause::absence);
  }
}

template <class T>
std::vector<T> AbsentMemory<T>::replacement(ServerState<T>& state) const {
  if (!rule_.replaces()) return {};
  const std::span<const double> mean = state.slot(kAbsentMean);
  std::vector<T> rounded(mean.size());
  std::ranges::transform(mean, rounded.begin(), [](double x) { return static_cast<T>(x); });
  return rounded;
}

template <class T>
double AbsentMemory<T>::residual_age(std::uint32_t round, std::span<const std::uint32_t> cohort) const {
  double sum = 0, count = 0;
  for (const std::uint32_t client : cohort) {
    if (last_received_[client] == 0) continue;
    sum += round - last_received_[client];
    count += 1;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

template <class T>
void AbsentMemory<T>::persist(Archive& archive) {
  archive.section("heard");
  archive.array(std::span(last_received_));
}

template class AbsentMemory<float>;
template class AbsentMemory<double>;

}  // namespace fl
