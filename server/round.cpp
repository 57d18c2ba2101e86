#include "server/round.hpp"

#include <algorithm>
#include <utility>

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
      aggregates_(parts.exchange.channels.size()) {
  for (std::size_t c = 0; c < aggregates_.size(); ++c)
    channels_.push_back({Buffer<double>(0, settings_.sums), Buffer<double>(0, settings_.sums)});
  parts_.optimizer.open(model.size());
}

template <class T>
void Round<T>::play(std::uint32_t round, bool measure) {
  sample(round);
  if (cohorts_.now.cohort.empty()) {
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
  reader_.release();
  parts_.runner.close_round(closed, delivered());
  absence_.receive(round, cohorts_.now.cohort, delivered());
  absence_.learn(cohorts_.now.cohort, parts_.runner, parts_.state, ledger_);
  ledger_.close_round();
}

// Determines the cohort of the round and the weight of each client.
template <class T>
void Round<T>::sample(std::uint32_t round) {
  if (cohorts_.next_round == round)
    std::swap(cohorts_.now, cohorts_.next);
  else
    draw(round, cohorts_.now);
  cohorts_.next_round = 0;
  if (parts_.runner.reads_ahead()) draw(cohorts_.next_round = round + 1, cohorts_.next);
  if (const std::vector<std::uint8_t> is_here = parts_.runner.present(round, cohorts_.now.cohort); !is_here.empty())
    keep_present(is_here, cohorts_.now);
  cohorts_.residual_age = absence_.residual_age(round, cohorts_.now.cohort);
  ledger_.open_round();
}

// Participation is a function of the round, so the next one can be known before this one is played.
template <class T>
void Round<T>::draw(std::uint32_t round, RoundPlan& plan) const {
  parts_.participation.sample(round, parts_.run.seeds.sampling, parts_.run.weights, plan);
  if (parts_.run.average == Average::uniform) plan.cohort_weight.assign(plan.cohort.size(), 1 / static_cast<double>(plan.cohort.size()));
}

// Computes the estimate. Normalised vectors are per unit of work, so it is multiplied by the mean work, sum_i weight_i work_i / sum weight.
template <class T>
void Round<T>::receive() {
  if (!sums_are_estimates()) {
    std::vector<ArrivedMessages<T>> arrived;
    for (std::size_t c = 0; c < channels_.size(); ++c)
      arrived.push_back({parts_.exchange.channels[c].phase_scope.back(), channels_[c].arrived});
    parts_.feedback.receive({view(), cohorts_.now.cohort_weight, cohorts_.now.population_weight, arrived, parts_.state, parts_.shared},
                            aggregates_, estimate_.span());
  }
  if (!parts_.run.normalises()) return;
  double work = 0, sum = 0;
  for (std::size_t i = 0; i < reports_.work.size(); ++i) {
    if (delivered()[i] == 0) continue;
    work += cohorts_.now.cohort_weight[i] * reports_.work[i];
    sum += cohorts_.now.cohort_weight[i];
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
  if (reports_.statistics.empty()) return;
  std::vector<T> rounded(reports_.statistics.size());
  std::ranges::transform(reports_.statistics, rounded.begin(), [](double s) { return static_cast<T>(s); });
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
  absence_.charge_returning(round, cohorts_.now.cohort, ledger_);
  parts_.downlink.send(parts_.pool.exec(0), round, model_, cohorts_.now.cohort, parts_.shared, ledger_);
  delivery_.open(cohorts_.now.cohort.size());
  const double step_size = settings_.step_size * settings_.schedule.factor(round, settings_.rounds);
  order_ = {.round = round,
            .step_size = step_size,
            .server_step = parts_.optimizer.plain_rate().value_or(0) * step_of(step_size),
            .coin = parts_.feedback.toss(parts_.run, round),
            .measure = measure,
            .cohort = cohorts_.now.cohort};
  parts_.feedback.derive(view(), parts_.shared);
  const std::vector<T> replacement = absence_.replacement(parts_.state);
  RoundOpening<T> opening{.replacement = replacement, .model = &parts_.downlink};
  if (cohorts_.next_round != 0) opening.next_cohort = cohorts_.next.cohort;
  parts_.runner.open_round(view(), opening);
}

// One phase: messages from every client, their bits, their weighted sums.
template <class T>
void Round<T>::collect(int phase) {
  MessageBatch<T> batch = [&] {
    const ScopedTimer timer(seconds_in(settings_.times, &RoundTimes::exchange_s));
    return parts_.runner.exchange(view(), phase);
  }();
  reports_.work.clear();
  for (const ClientMessage<T>& message : batch.messages) reports_.work.push_back(message.work);
  {
    const ScopedTimer timer(seconds_in(settings_.times, &RoundTimes::aggregate_s));
    reader_.read(view(), phase, std::move(batch), parts_.runner);
  }
  for (const ClientMessage<T>& message : reader_.messages())
    ledger_.count_message(message.client, message.bits, message.channel_bits, message.statistics_bits);
  delivery_.take(reader_.messages(), cohorts_.now.cohort_weight);
  for (std::size_t c = 0; c < parts_.exchange.channels.size(); ++c)
    if (phase < parts_.exchange.channels[c].num_phases()) aggregate(phase, c);
}

// Averages the statistics of delivered messages, if any, with the cohort's weights.
template <class T>
void Round<T>::average_statistics() {
  reports_.statistics.assign(num_statistics(parts_.run.statistics), 0.0);
  double sum = 0;
  for (std::uint32_t i = 0; i < delivered().size() && !reports_.statistics.empty(); ++i) {
    const std::span<const T> told = delivered()[i] != 0 ? reader_.statistics(i) : std::span<const T>();
    const double weight = cohorts_.now.cohort_weight[i];
    if (!told.empty()) sum += weight;
    for (std::size_t s = 0; s < told.size(); ++s) reports_.statistics[s] += weight * static_cast<double>(told[s]);
  }
  if (!(sum > 0)) reports_.statistics.clear();
  for (double& s : reports_.statistics) s /= sum;
}

template <class T>
void Round<T>::aggregate(int phase, std::size_t c) {
  const ScopedTimer timer(seconds_in(settings_.times, &RoundTimes::aggregate_s));
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  const Scope& scope = channel.phase_scope[static_cast<std::size_t>(phase)];
  std::vector<const Payload<T>*>& arrived = channels_[c].arrived;
  arrived.resize(cohorts_.now.cohort.size());
  for (std::uint32_t i = 0; i < arrived.size(); ++i) arrived[i] = delivered()[i] != 0 ? reader_.payload(c, i) : nullptr;
  Buffer<double>& sums = sums_are_estimates() ? estimate_ : channels_[c].cohort;
  sums.resize_discard(scope.P);
  aggregator_.sum(arrived, cohorts_.now.cohort_weight, scope, sums.span());
  aggregates_[c] = {sums.span(), sums.span()};
  if (channel.num_phases() > 1) return absorb_mean(phase, c);

  const bool same =
      std::equal(cohorts_.now.cohort_weight.begin(), cohorts_.now.cohort_weight.end(), cohorts_.now.population_weight.begin());
  if (same || !parts_.plan.needs_population) return;
  Buffer<double>& population = channels_[c].population;
  population.resize_discard(scope.P);
  aggregator_.sum(arrived, cohorts_.now.population_weight, scope, population.span());
  aggregates_[c].population = population.span();
}

// Everyone learns the mean of the phase and moves the operator's shared state by it; the last one is the mean of the messages.
template <class T>
void Round<T>::absorb_mean(int phase, std::size_t c) {
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  Buffer<double>& sums = channels_[c].cohort;
  phase_mean_.message.resize_discard(sums.size());
  phase_mean_.estimate.resize_discard(model_.size());
  std::copy(sums.begin(), sums.end(), phase_mean_.message.begin());
  const std::span<T> shared = parts_.shared.slot(channel.shared_slot);
  channel.compressor->absorb_mean(phase, channel.scope, phase_mean_.message.span(), shared.data(), phase_mean_.estimate.data());
  clear_statistics(parts_.run.statistics, phase_mean_.estimate.data());
  if (phase + 1 < channel.num_phases()) {
    parts_.downlink.charge_phase(sums.size(), cohorts_.now.cohort, ledger_);
    parts_.runner.learn_mean(c, phase, phase_mean_.message.span());
    return;
  }
  sums.resize_discard(model_.size());
  std::copy(phase_mean_.estimate.begin(), phase_mean_.estimate.end(), sums.begin());
  aggregates_[c] = {sums.span(), sums.span()};
}

template class Round<float>;
template class Round<double>;

}  // namespace fl
