#include "server/reducer.hpp"

#include <algorithm>
#include <utility>

namespace fl {

template <class T>
Reducer<T>::Reducer(const ReducerParts<T>& parts, Device sums, RoundTimes* times)
    : parts_(parts),
      times_(times),
      reader_(parts.exchange, parts.pool),
      aggregator_(parts.pool),
      own_estimate_(0, sums),
      aggregates_(parts.exchange.channels.size()) {
  for (std::size_t c = 0; c < aggregates_.size(); ++c) channels_.push_back({Buffer<double>(0, sums), Buffer<double>(0, sums)});
}

template <class T>
void Reducer<T>::open(RoundPlan& plan, std::span<double> estimate) {
  if (estimate.empty()) own_estimate_.resize_discard(parts_.run.P);
  estimate_ = estimate.empty() ? own_estimate_.span() : estimate;
  plan_ = &plan;
  delivery_.open(plan.cohort.size());
}

template <class T>
void Reducer<T>::skip() {
  own_estimate_.resize_discard(parts_.run.P);
  estimate_ = own_estimate_.span();
  std::ranges::fill(estimate_, 0.0);
  delivery_.skip();
}

template <class T>
void Reducer<T>::take(const RoundView<T>& round, int phase, MessageBatch<T> batch, CohortRunner<T>& clients, const Spread& spread) {
  reports_.work.clear();
  for (const ClientMessage<T>& message : batch.messages) reports_.work.push_back(message.work);
  {
    const ScopedTimer timer(seconds_in(times_, &RoundTimes::aggregate_s));
    reader_.read(round, phase, std::move(batch), clients);
  }
  delivery_.take(reader_.messages(), plan_->cohort_weight);
  for (std::size_t c = 0; c < parts_.exchange.channels.size(); ++c)
    if (phase < parts_.exchange.channels[c].num_phases()) aggregate(phase, c, spread);
}

template <class T>
void Reducer<T>::receive(const RoundView<T>& round) {
  average_values();
  std::vector<ArrivedMessages<T>> arrived;
  for (std::size_t c = 0; c < channels_.size(); ++c)
    arrived.push_back({parts_.exchange.channels[c].phase_scope.back(), channels_[c].arrived});
  const ServerRound<T> of_server{round, plan_->cohort_weight, plan_->population_weight, arrived, parts_.state, parts_.shared};
  if (!sums_are_estimates()) parts_.feedback.receive(of_server, aggregates_, estimate_);
  if (parts_.run.normalises()) multiply_by_mean_work();
  if (parts_.postprocessor != nullptr) parts_.postprocessor->on_server(of_server, estimate_);
  reader_.release();
}

// Normalised vectors are per unit of work, so the estimate is multiplied by the mean work, sum_i weight_i work_i / sum weight.
template <class T>
void Reducer<T>::multiply_by_mean_work() {
  double work = 0, sum = 0;
  for (std::size_t i = 0; i < reports_.work.size(); ++i) {
    if (delivery_.delivered()[i] == 0) continue;
    work += plan_->cohort_weight[i] * reports_.work[i];
    sum += plan_->cohort_weight[i];
  }
  if (sum > 0)
    for (double& e : estimate_) e *= work / sum;
}

// Averages the values of averaged parameters in delivered messages, if any, with the cohort's weights.
template <class T>
void Reducer<T>::average_values() {
  reports_.averaged.assign(parts_.run.kinds.num_averaged(), 0.0);
  double sum = 0;
  for (std::uint32_t i = 0; i < delivery_.delivered().size() && !reports_.averaged.empty(); ++i) {
    const std::span<const T> told = delivery_.delivered()[i] != 0 ? reader_.averaged(i) : std::span<const T>();
    const double weight = plan_->cohort_weight[i];
    if (!told.empty()) sum += weight;
    for (std::size_t a = 0; a < told.size(); ++a) reports_.averaged[a] += weight * static_cast<double>(told[a]);
  }
  if (!(sum > 0)) reports_.averaged.clear();
  for (double& mean : reports_.averaged) mean /= sum;
}

template <class T>
void Reducer<T>::aggregate(int phase, std::size_t c, const Spread& spread) {
  const ScopedTimer timer(seconds_in(times_, &RoundTimes::aggregate_s));
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  const Scope& scope = channel.phase_scope[static_cast<std::size_t>(phase)];
  std::vector<const Payload<T>*>& arrived = channels_[c].arrived;
  arrived.resize(plan_->cohort.size());
  for (std::uint32_t i = 0; i < arrived.size(); ++i) arrived[i] = delivery_.delivered()[i] != 0 ? reader_.payload(c, i) : nullptr;
  if (!sums_are_estimates()) channels_[c].cohort.resize_discard(scope.P);
  const std::span<double> sums = sums_are_estimates() ? estimate_ : channels_[c].cohort.span();
  if (parts_.aggregation.is_sum())
    aggregator_.sum(arrived, plan_->cohort_weight, scope, sums);
  else
    aggregator_.combine(parts_.aggregation, arrived, plan_->cohort_weight, scope, sums);
  aggregates_[c] = {sums, sums};
  if (channel.num_phases() > 1) return absorb_mean(phase, c, spread);

  const bool same = std::equal(plan_->cohort_weight.begin(), plan_->cohort_weight.end(), plan_->population_weight.begin());
  if (same || !parts_.plan.needs_population) return;
  Buffer<double>& population = channels_[c].population;
  population.resize_discard(scope.P);
  aggregator_.sum(arrived, plan_->population_weight, scope, population.span());
  aggregates_[c].population = population.span();
}

// Everyone learns the mean of the phase and moves the operator's shared state by it; the last one is the mean of the messages.
template <class T>
void Reducer<T>::absorb_mean(int phase, std::size_t c, const Spread& spread) {
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  Buffer<double>& sums = channels_[c].cohort;
  phase_mean_.message.resize_discard(sums.size());
  phase_mean_.estimate.resize_discard(parts_.run.P);
  std::copy(sums.begin(), sums.end(), phase_mean_.message.begin());
  const std::span<T> shared = parts_.shared.slot(channel.shared_slot);
  channel.compressor->absorb_mean(phase, channel.scope, phase_mean_.message.span(), shared.data(), phase_mean_.estimate.data());
  clear_ranges(parts_.run.kinds.unshared, phase_mean_.estimate.data());
  if (phase + 1 < channel.num_phases()) {
    spread(c, phase, phase_mean_.message.span());
    return;
  }
  sums.resize_discard(parts_.run.P);
  std::copy(phase_mean_.estimate.begin(), phase_mean_.estimate.end(), sums.begin());
  aggregates_[c] = {sums.span(), sums.span()};
}

template class Reducer<float>;
template class Reducer<double>;

}  // namespace fl
