#include "clients/host/client_process.hpp"

#include <algorithm>
#include <string>

#include "fl_core/config/error.hpp"
#include "fl_core/ops/scaled_sums.hpp"
#include "fl_core/round/kept_parameters.hpp"

namespace fl {

template <class T>
ClientProcess<T>::ClientProcess(const ClientParts<T>& parts, AbsenceRule absence, bool runs_memory_sum, std::size_t waves)
    : parts_(parts),
      absence_(std::move(absence)),
      memory_sum_(absence_, parts.run.weights, runs_memory_sum, parts.state, parts.pool),
      most_waves_(waves) {}

template <class T>
typename ClientProcess<T>::Wave& ClientProcess<T>::select(std::size_t wave) {
  now_ = wave;
  parts_.state.select(wave);
  return waves_[wave];
}

// Selects a wave for a round that begins: its own if it begins again, else one that is closed or has not been used, or that of the oldest
// round.
template <class T>
typename ClientProcess<T>::Wave& ClientProcess<T>::open_wave(const RoundOrder& order) {
  if (const auto again = open_.find(key_of(order)); again != open_.end()) return select(again->second);
  if (closed_.empty() && waves_.size() < most_waves_) {
    closed_.push_back(waves_.size());
    waves_.emplace_back();
  } else if (closed_.empty()) {
    closed_.push_back(open_.begin()->second);
    open_.erase(open_.begin());
  }
  const std::size_t wave = closed_.back();
  closed_.pop_back();
  open_[key_of(order)] = wave;
  return select(wave);
}

template <class T>
typename ClientProcess<T>::Wave& ClientProcess<T>::wave_of(const RoundOrder& order) {
  const auto found = open_.find(key_of(order));
  if (found == open_.end()) throw Error("round " + std::to_string(order.round) + " is not open");
  return select(found->second);
}

template <class T>
void ClientProcess<T>::open_round(const RoundView<T>& round, const RoundOpening<T>& opening) {
  if (parts_.shared.is_own && !opening.derived_is_known) parts_.feedback.derive(round, parts_.shared.slots);
  Wave& wave = open_wave(round.order);
  wave.cohort = round.order.cohort;
  parts_.state.open_round(wave.cohort, opening.next_cohort);
  memory_sum_.begin_round(round.order.round, wave.cohort);
  absence_.settle(round.order.round, wave.cohort, opening.replacement, parts_.state);
  if (parts_.run.kinds.kept.empty()) return;
  wave.received.assign(round.reference.begin(), round.reference.end());
  clear_ranges<T>(parts_.run.kinds.kept, wave.received.data());
}

// Clients do not see the kept parameters of the server's model (their mean, for measures). The gradient's entry of a running average is
// then exactly 0 - b with the minibatch's value b, so that a client's own average depends only on its own values and the messages that it
// receives.
template <class T>
MessageBatch<T> ClientProcess<T>::exchange(const RoundView<T>& round, int phase) {
  const Wave& wave = wave_of(round.order);
  if (parts_.run.kinds.kept.empty()) return parts_.runner.exchange(round, phase, now_);
  return parts_.runner.exchange(RoundView<T>{round.run, round.order, wave.received}, phase, now_);
}

template <class T>
void ClientProcess<T>::skip_round(std::uint32_t round) {
  memory_sum_.begin_round(round, {});
}

template <class T>
void ClientProcess<T>::learn_mean(std::size_t channel, int phase, std::span<const T> mean) {
  if (!parts_.shared.is_own) return;
  const ExchangeChannel<T>& of = parts_.exchange.channels[channel];
  std::vector<T> estimate(parts_.run.P);
  of.compressor->absorb_mean(phase, of.scope, mean, parts_.shared.slots.slot(of.shared_slot).data(), estimate.data());
}

// Moves kept parameters according to the clients' work, whether or not their messages have content.
template <class T>
void ClientProcess<T>::close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) {
  Wave& wave = wave_of(round.order);
  if (parts_.shared.is_own) parts_.shared.slots.keep_model(round.reference);
  for (std::uint32_t i = 0; !parts_.run.kinds.kept.empty() && i < wave.cohort.size(); ++i)
    if (delivered[i] != 0) std::ranges::copy(parts_.runner.kept(i), parts_.state.stored(kKeptValues, i, 1).row(0));
  parts_.runner.acknowledge(round, delivered, now_);
  memory_sum_.end_round(wave.cohort);
  closed_.push_back(now_);
  open_.erase(key_of(round.order));
}

template <class T>
std::span<const T> ClientProcess<T>::error_memory(std::uint32_t position) {
  const std::string& slot = absence_.rule().slot;
  const std::uint32_t client = waves_[now_].cohort[position];
  return parts_.state.memory() == Device::cuda ? parts_.state.peek(slot, client) : parts_.state.of_client(slot, client);
}

template <class T>
void ClientProcess<T>::persist(Archive& archive) {
  parts_.state.persist(archive);
  memory_sum_.persist(archive);
}

template <class T>
void ClientProcess<T>::Probe::add_kept_moves(std::span<const std::uint8_t> delivered, std::span<double> mean) {
  std::vector<double> move(mean.size());
  for (std::uint32_t i = 0; i < process_.waves_[process_.now_].cohort.size(); ++i) {
    if (delivered[i] == 0) continue;
    read_kept_move(i, move);
    add_scaled<double>(process_.parts_.run.weights[process_.waves_[process_.now_].cohort[i]], std::span<const double>(move), mean);
  }
}

template <class T>
void ClientProcess<T>::Probe::read_kept_move(std::uint32_t position, std::span<double> move) {
  const std::span<const T> now = process_.parts_.runner.kept(position);
  std::vector<T> before(move.size());
  std::ranges::fill(move, 0.0);
  read_kept<T>(process_.parts_.state, process_.parts_.shared.slots, process_.waves_[process_.now_].cohort[position],
               process_.parts_.state.stored(kKeptValues, position, 1).row(0), before.data());
  std::ranges::transform(now, before, move.begin(), [](T a, T b) { return static_cast<double>(a) - static_cast<double>(b); });
}

template <class T>
void ClientProcess<T>::Probe::put_kept(std::uint32_t client, T* x) {
  if (process_.parts_.run.kinds.kept.empty()) return;
  std::vector<T> own(process_.parts_.shared.slots.slot(kInitialKept).size());
  const std::span<const T> stored = process_.parts_.state.peek(kKeptValues, client);
  const std::vector<T> zeros(stored.empty() ? own.size() : 0);  // peek() is empty if all are 0
  read_kept(process_.parts_.state, process_.parts_.shared.slots, client, stored.empty() ? zeros.data() : stored.data(), own.data());
  scatter_ranges(process_.parts_.run.kinds.kept, own.data(), x);
}

template class ClientProcess<float>;
template class ClientProcess<double>;

}  // namespace fl
