#include "server/round.hpp"

#include <algorithm>

namespace fl {

template <class T>
Round<T>::Round(RoundParts<T> parts, RoundSettings settings, std::span<T> model)
    : parts_(parts),
      settings_(std::move(settings)),
      model_(model),
      ledger_(settings_.weights.size()),
      aggregator_(parts.pool),
      estimate_(model.size()),
      sums_(parts.exchange.channels.size()),
      state_sums_(parts.exchange.channels.size()),
      aggregates_(parts.exchange.channels.size()) {}

template <class T>
void Round<T>::play(std::uint32_t round, bool measure) {
  RoundContext<T> context = open(round, measure);
  for (int phase = 0; phase < parts_.exchange.num_phases(); ++phase) collect(context, phase);
  parts_.feedback.receive(context, aggregates_, estimate_.span());
  parts_.optimizer.step(round, settings_.unit == Unit::gradient ? settings_.step_size : 1.0, estimate_.span(), model_);
  parts_.runner.acknowledge(context, delivered_);
  ledger_.close_round();
}

template <class T>
void Round<T>::persist(Archive& archive) {
  archive.section("model");
  archive.array(model_);
  archive.section("optimizer");
  parts_.optimizer.persist(archive);
  parts_.downlink.persist(archive);
  ledger_.persist(archive);
  parts_.state.persist(archive);
}

template <class T>
RoundContext<T> Round<T>::open(std::uint32_t round, bool measure) {
  parts_.participation.sample(round, settings_.seeds.sampling, settings_.weights, plan_);
  ledger_.open_round();
  parts_.state.open_round(plan_.cohort);
  parts_.downlink.send(parts_.pool.exec(0), round, model_, plan_.cohort, parts_.state, ledger_);
  delivered_.assign(plan_.cohort.size(), 1);
  RoundContext<T> context{.round = round,
                          .step_size = settings_.step_size,
                          .unit = settings_.unit,
                          .coin = false,
                          .measure = measure,
                          .cohort = plan_.cohort,
                          .cohort_weight = plan_.cohort_weight,
                          .population_weight = plan_.population_weight,
                          .num_clients = settings_.weights.size(),
                          .P = model_.size(),
                          .reference = parts_.downlink.reference().data(),
                          .offset_slot = parts_.feedback.offset_slot(),
                          .seeds = settings_.seeds,
                          .state = &parts_.state};
  parts_.feedback.open_round(context);
  return context;
}

// One phase: messages from every client, their bits, their weighted sums.
template <class T>
void Round<T>::collect(const RoundContext<T>& context, int phase) {
  for (const ClientMessage<T>& message : parts_.runner.exchange(context, phase)) ledger_.count_up(message.client, message.bits);
  for (std::size_t c = 0; c < parts_.exchange.channels.size(); ++c)
    if (phase < parts_.exchange.channels[c].num_phases()) aggregate(context, phase, c);
}

template <class T>
void Round<T>::aggregate(const RoundContext<T>& context, int phase, std::size_t c) {
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  const Scope& scope = channel.phase_scope[static_cast<std::size_t>(phase)];
  const std::size_t L = scope.P;
  arrived_.resize(context.cohort.size());
  for (std::uint32_t i = 0; i < arrived_.size(); ++i) arrived_[i] = delivered_[i] != 0 ? parts_.runner.payload(c, i) : nullptr;
  sums_[c].resize_discard(L);
  aggregator_.sum(arrived_, context.cohort_weight, scope, sums_[c].span());
  aggregates_[c] = {sums_[c].span(), sums_[c].span()};

  if (channel.num_phases() > 1) {
    // Everyone learns the mean of the phase and moves the operator's shared state by it.
    phase_mean_.resize_discard(L);
    phase_estimate_.resize_discard(context.P);
    std::copy(sums_[c].begin(), sums_[c].end(), phase_mean_.begin());
    const std::span<T> shared = context.state->cohort(channel.shared_slot);
    channel.compressor->absorb_mean(phase, channel.scope, phase_mean_.span(), shared.data(), phase_estimate_.data());
    if (phase + 1 < channel.num_phases()) {
      parts_.downlink.charge_phase(L, context.cohort, ledger_);
      return;
    }
    sums_[c].resize_discard(context.P);
    std::copy(phase_estimate_.begin(), phase_estimate_.end(), sums_[c].begin());
    aggregates_[c] = {sums_[c].span(), sums_[c].span()};
    return;
  }
  const bool same = std::equal(context.cohort_weight.begin(), context.cohort_weight.end(), context.population_weight.begin());
  if (same) return;
  state_sums_[c].resize_discard(L);
  aggregator_.sum(arrived_, context.population_weight, scope, state_sums_[c].span());
  aggregates_[c].population = state_sums_[c].span();
}

template class Round<float>;
template class Round<double>;

}  // namespace fl
