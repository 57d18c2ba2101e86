#include "server/round.hpp"

#include <algorithm>

#include "fl_core/ops/pieces.hpp"
#include "fl_core/round/own_statistics.hpp"

namespace fl {

template <class T>
Round<T>::Round(RoundParts<T> parts, RoundSettings settings, std::span<T> model)
    : parts_(parts),
      settings_(std::move(settings)),
      model_(model),
      ledger_(parts.run.num_clients),
      reader_(parts.exchange, parts.pool),
      aggregator_(parts.pool),
      absence_(settings_.absence, parts.run.num_clients, parts.run.P),
      estimate_(model.size(), settings_.sums),
      sums_(parts.exchange.channels.size()),
      state_sums_(parts.exchange.channels.size()),
      aggregates_(parts.exchange.channels.size()),
      arrived_(parts.exchange.channels.size()) {
  for (auto* sums : {&sums_, &state_sums_})
    for (Buffer<double>& one : *sums) one = Buffer<double>(0, settings_.sums);
  parts_.optimizer.open(model.size());
}

template <class T>
void Round<T>::play(std::uint32_t round, bool measure) {
  sample(round);
  if (plan_.cohort.empty()) {
    std::fill(estimate_.begin(), estimate_.end(), 0.0);
    delivery_.skip();
    parts_.runner.skip_round(round);
    return;
  }
  open(round, measure);
  for (int phase = 0; phase < parts_.exchange.num_phases(); ++phase) collect(phase);
  if (!parts_.run.local_statistics) average_statistics();
  receive();
  parts_.shared.keep_model(parts_.downlink.reference());
  step();
  RoundView<T> closed = view();
  closed.reference = {};  // the step may have moved it
  parts_.runner.close_round(closed, delivered());
  absence_.receive(round, plan_.cohort, delivered());
  absence_.learn(plan_.cohort, parts_.runner, parts_.state, ledger_);
  ledger_.close_round();
}

// Who takes part, and for how much each counts.
template <class T>
void Round<T>::sample(std::uint32_t round) {
  if (next_round_ == round)
    std::swap(plan_, next_plan_);
  else
    draw(round, plan_);
  next_round_ = 0;
  if (parts_.runner.reads_ahead()) draw(next_round_ = round + 1, next_plan_);
  residual_age_ = absence_.residual_age(round, plan_.cohort);
  ledger_.open_round();
}

// Participation is a function of the round, so the next one can be known before this one is played.
template <class T>
void Round<T>::draw(std::uint32_t round, RoundPlan& plan) const {
  parts_.participation.sample(round, parts_.run.seeds.sampling, parts_.run.weights, plan);
  if (parts_.run.average == Average::uniform) plan.cohort_weight.assign(plan.cohort.size(), 1 / static_cast<double>(plan.cohort.size()));
}

// What the feedback makes of the sums. Normalised vectors are per unit of work: times the mean work, sum_i weight_i work_i / sum weight.
template <class T>
void Round<T>::receive() {
  if (!sums_are_estimates()) {
    std::vector<ArrivedMessages<T>> arrived;
    for (std::size_t c = 0; c < arrived_.size(); ++c) arrived.push_back({parts_.exchange.channels[c].phase_scope.back(), arrived_[c]});
    parts_.feedback.receive({view(), plan_.cohort_weight, plan_.population_weight, arrived, parts_.state, parts_.shared}, aggregates_,
                            estimate_.span());
  }
  if (!parts_.run.normalises()) return;
  double work = 0, sum = 0;
  for (std::size_t i = 0; i < work_.size(); ++i) {
    if (delivered()[i] == 0) continue;
    work += plan_.cohort_weight[i] * work_[i];
    sum += plan_.cohort_weight[i];
  }
  if (sum > 0)
    for (double& e : estimate_) e *= work / sum;
}

// The weights move along the estimate; the statistics become the mean of those that arrived.
template <class T>
void Round<T>::step() {
  const double step_size = step_of(order_.step_size);
  for_each_piece(parts_.pool, model_.size(), [&](std::size_t first, std::size_t last) {
    for_each_run_of_weights(parts_.run.statistics, first, last, [&](std::size_t begin, std::size_t end) {
      parts_.optimizer.step(order_.round, step_size, begin, std::span<const double>(estimate_.span()).subspan(begin, end - begin),
                            model_.subspan(begin, end - begin));
    });
  });
  if (parts_.run.local_statistics) return keep_statistics();
  if (statistics_.empty()) return;
  std::vector<T> rounded(statistics_.size());
  std::ranges::transform(statistics_, rounded.begin(), [](double s) { return static_cast<T>(s); });
  scatter_statistics(parts_.run.statistics, rounded.data(), model_.data());
}

// Clients keep the statistics that they have; the model has the mean of all clients', by w_i, for its measures.
template <class T>
void Round<T>::keep_statistics() {
  if (parts_.probe == nullptr) return;
  const std::span<double> mean = parts_.state.slot(kMeanStatistics);
  parts_.probe->add_statistics_moves(delivered(), mean);
  std::vector<T> rounded(mean.size());
  std::ranges::transform(mean, rounded.begin(), [](double s) { return static_cast<T>(s); });
  scatter_statistics(parts_.run.statistics, rounded.data(), model_.data());
}

template <class T>
std::vector<double> Round<T>::memory_sum(std::uint32_t round) {
  if (parts_.probe == nullptr) return {};
  return parts_.probe->error_memory_sum(round, absence_.rule().replaces() ? parts_.state.slot(kAbsentMean) : std::span<const double>());
}

template <class T>
void Round<T>::persist(Archive& archive) {
  archive.section("model");
  archive.array(model_);
  archive.section("optimizer");
  parts_.optimizer.persist(archive);
  parts_.optimizer.open(model_.size());  // a file may be of a run that had not stepped
  parts_.downlink.persist(archive);
  ledger_.persist(archive);
  absence_.persist(archive);
  parts_.runner.persist(archive);
  parts_.shared.persist(archive);
  parts_.state.persist(archive);
}

template <class T>
void Round<T>::require_nothing_after(std::uint32_t round) const {
  if (parts_.downlink.last_round() > round)
    throw ArchiveError("in 'downlink': it refers to round " + std::to_string(parts_.downlink.last_round()) + ", the run has played " +
                       std::to_string(round));
  for (std::size_t client = 0; client < absence_.last_received().size(); ++client)
    if (absence_.last_received()[client] > round)
      throw ArchiveError("in 'heard': client " + std::to_string(client) + " took part in round " +
                         std::to_string(absence_.last_received()[client]) + ", the run has played " + std::to_string(round));
}

template <class T>
void Round<T>::open(std::uint32_t round, bool measure) {
  absence_.charge_returning(round, plan_.cohort, ledger_);
  parts_.downlink.send(parts_.pool.exec(0), round, model_, plan_.cohort, parts_.shared, ledger_);
  delivery_.open(plan_.cohort.size());
  const double step_size = settings_.step_size * settings_.schedule.factor(round, settings_.rounds);
  order_ = {.round = round,
            .step_size = step_size,
            .server_step = parts_.optimizer.plain_rate().value_or(0) * step_of(step_size),
            .coin = parts_.feedback.toss(parts_.run, round),
            .measure = measure,
            .cohort = plan_.cohort};
  parts_.feedback.derive(view(), parts_.shared);
  parts_.runner.open_round(view(), absence_.replacement(parts_.state),
                           next_round_ != 0 ? std::span<const std::uint32_t>(next_plan_.cohort) : std::span<const std::uint32_t>());
}

// One phase: messages from every client, their bits, their weighted sums.
template <class T>
void Round<T>::collect(int phase) {
  const std::span<const ClientMessage<T>> messages = [&] {
    const ScopedTimer timer(seconds_in(settings_.times, &RoundTimes::exchange_s));
    return parts_.runner.exchange(view(), phase);
  }();
  for (const ClientMessage<T>& message : messages)
    ledger_.count_message(message.client, message.bits, message.channel_bits, message.statistics_bits);
  delivery_.take(messages, plan_.cohort_weight);
  {
    const ScopedTimer timer(seconds_in(settings_.times, &RoundTimes::aggregate_s));
    reader_.read(view(), phase, messages, parts_.runner);
  }
  work_.clear();
  for (const ClientMessage<T>& message : messages) work_.push_back(message.work);
  for (std::size_t c = 0; c < parts_.exchange.channels.size(); ++c)
    if (phase < parts_.exchange.channels[c].num_phases()) aggregate(phase, c);
}

// The mean of the clients' statistics by the cohort's weights, over the messages that arrived and hold them; none where nobody told any.
template <class T>
void Round<T>::average_statistics() {
  statistics_.assign(num_statistics(parts_.run.statistics), 0.0);
  double sum = 0;
  for (std::uint32_t i = 0; i < delivered().size() && !statistics_.empty(); ++i) {
    const std::span<const T> told = delivered()[i] != 0 ? reader_.statistics(i) : std::span<const T>();
    const double weight = plan_.cohort_weight[i];
    if (!told.empty()) sum += weight;
    for (std::size_t s = 0; s < told.size(); ++s) statistics_[s] += weight * static_cast<double>(told[s]);
  }
  if (!(sum > 0)) statistics_.clear();
  for (double& s : statistics_) s /= sum;
}

template <class T>
void Round<T>::aggregate(int phase, std::size_t c) {
  const ScopedTimer timer(seconds_in(settings_.times, &RoundTimes::aggregate_s));
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  const Scope& scope = channel.phase_scope[static_cast<std::size_t>(phase)];
  std::vector<const Payload<T>*>& arrived = arrived_[c];
  arrived.resize(plan_.cohort.size());
  for (std::uint32_t i = 0; i < arrived.size(); ++i) arrived[i] = delivered()[i] != 0 ? reader_.payload(c, i) : nullptr;
  Buffer<double>& sums = sums_are_estimates() ? estimate_ : sums_[c];
  sums.resize_discard(scope.P);
  aggregator_.sum(arrived, plan_.cohort_weight, scope, sums.span());
  aggregates_[c] = {sums.span(), sums.span()};
  if (channel.num_phases() > 1) return absorb_mean(phase, c);

  const bool same = std::equal(plan_.cohort_weight.begin(), plan_.cohort_weight.end(), plan_.population_weight.begin());
  if (same || !parts_.plan.needs_population) return;
  state_sums_[c].resize_discard(scope.P);
  aggregator_.sum(arrived, plan_.population_weight, scope, state_sums_[c].span());
  aggregates_[c].population = state_sums_[c].span();
}

// Everyone learns the mean of the phase and moves the operator's shared state by it; the last one is the mean of the messages.
template <class T>
void Round<T>::absorb_mean(int phase, std::size_t c) {
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  Buffer<double>& sums = sums_[c];
  phase_mean_.resize_discard(sums.size());
  phase_estimate_.resize_discard(model_.size());
  std::copy(sums.begin(), sums.end(), phase_mean_.begin());
  const std::span<T> shared = parts_.shared.slot(channel.shared_slot);
  channel.compressor->absorb_mean(phase, channel.scope, phase_mean_.span(), shared.data(), phase_estimate_.data());
  clear_statistics(parts_.run.statistics, phase_estimate_.data());
  if (phase + 1 < channel.num_phases()) {
    parts_.downlink.charge_phase(sums.size(), plan_.cohort, ledger_);
    parts_.runner.learn_mean(c, phase, phase_mean_.span());
    return;
  }
  sums.resize_discard(model_.size());
  std::copy(phase_estimate_.begin(), phase_estimate_.end(), sums.begin());
  aggregates_[c] = {sums.span(), sums.span()};
}

template class Round<float>;
template class Round<double>;

}  // namespace fl
