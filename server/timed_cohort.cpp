#include "server/timed_cohort.hpp"

#include <algorithm>
#include <utility>

namespace fl {

namespace {
constexpr std::uint64_t kBitsOfValue = 32;  // by which other simulators count models
}

template <class T>
std::vector<std::uint64_t> TimedCohort<T>::Counted::take(std::span<const std::uint32_t> cohort, const std::vector<std::uint64_t>& now) {
  if (of_client.empty()) of_client.assign(now.size(), 0);
  std::vector<std::uint64_t> since;
  for (const std::uint32_t client : cohort) since.push_back(now[client] - std::exchange(of_client[client], now[client]));
  return since;
}

// Clients that cannot be reached are not asked. The clock waits until one can.
template <class T>
std::vector<std::uint8_t> TimedCohort<T>::present(std::uint32_t round, std::span<const std::uint32_t> cohort) {
  std::vector<std::uint8_t> is_here = clock_.wait_for_any(cohort);
  static_cast<void>(by_ratio_.wait_for_any(cohort));
  const std::vector<std::uint8_t> of_clients = clients_.present(round, cohort);
  for (std::size_t i = 0; i < of_clients.size(); ++i) is_here[i] = is_here[i] != 0 && of_clients[i] != 0 ? 1 : 0;
  return is_here;
}

template <class T>
void TimedCohort<T>::open_round(const RoundView<T>& round, const RoundOpening<T>& opening) {
  const std::vector<std::uint32_t>& cohort = round.order.cohort;
  clock_.open(round.order.round, cohort, awaited_, down_.take(cohort, ledger_->client_down_bits()));
  by_ratio_.open(round.order.round, cohort, awaited_, std::vector<std::uint64_t>(cohort.size(), kBitsOfValue * round.P()));
  clients_.open_round(round, opening);
}

template <class T>
void TimedCohort<T>::skip_round(std::uint32_t round) {
  clock_.skip();
  by_ratio_.skip();
  clients_.skip_round(round);
}

template <class T>
MessageBatch<T> TimedCohort<T>::exchange(const RoundView<T>& round, int phase) {
  if (phase > 0) clock_.send_mean(down_.take(round.order.cohort, ledger_->client_down_bits()));
  MessageBatch<T> batch = clients_.exchange(round, phase);
  messages_.assign(batch.messages.begin(), batch.messages.end());
  std::vector<std::uint64_t> bits, by_ratio;
  std::vector<std::uint8_t> is_sent;
  for (const ClientMessage<T>& message : messages_) {
    bits.push_back(message.is_counted ? message.bits.bits : 8 * message.encoded.size());
    by_ratio.push_back(kBitsOfValue * message.bits.elements);
    knows_values_ = knows_values_ && message.is_counted;
    is_sent.push_back(message.refused ? 0 : 1);
  }
  static_cast<void>(by_ratio_.close_phase(phase, by_ratio, is_sent));
  const std::span<const std::uint8_t> counts = clock_.close_phase(phase, bits, is_sent);
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    ClientMessage<T>& message = messages_[i];
    if (message.refused || counts[i] != 0) continue;
    if (clock_.has_left(i))
      message = {.client = message.client};
    else
      message.encoded = {};
    message.refused = message.is_absent = true;
  }
  batch.messages = messages_;
  return batch;
}

template <class T>
void TimedCohort<T>::learn_mean(std::size_t channel, int phase, std::span<const T> mean) {
  clients_.learn_mean(channel, phase, mean);
}

template <class T>
void TimedCohort<T>::close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) {
  clock_.close();
  by_ratio_.close();
  static_cast<void>(up_.take(round.order.cohort, ledger_->client_up_bits()));
  clients_.close_round(round, delivered);
  this->lost_memories_.assign(delivered.size(), 0);
  for (std::size_t i = 0; i < delivered.size(); ++i)
    this->lost_memories_[i] = !clients_.has_error_memory(static_cast<std::uint32_t>(i)) || clock_.has_left(i) ? 1 : 0;
}

template <class T>
std::span<const T> TimedCohort<T>::error_memory(std::uint32_t position) {
  return clients_.error_memory(position);
}

// Clients send memories after a round for the mean that replaces those of absent clients.
template <class T>
double TimedCohort<T>::settle() {
  const std::vector<std::uint64_t> bits = up_.take(clock_.last().cohort, ledger_->client_up_bits());
  if (std::ranges::any_of(bits, [](std::uint64_t b) { return b > 0; })) clock_.send_after(bits);
  timeline_ = clock_.last();
  if (knows_values_) timeline_.by_ratio_s = by_ratio_.now_s();
  return clock_.now_s();
}

template <class T>
void TimedCohort<T>::persist(Archive& archive) {
  clock_.persist(archive);
  by_ratio_.persist(archive);
  down_.of_client = ledger_->client_down_bits();
  up_.of_client = ledger_->client_up_bits();
  clients_.persist(archive);
}

template class TimedCohort<float>;
template class TimedCohort<double>;

}  // namespace fl
