#include "server/round.hpp"

#include <algorithm>
#include <utility>

#include "fl_core/round/kept_parameters.hpp"

namespace fl {

template <class T>
Round<T>::Round(RoundParts<T> parts, RoundSettings settings, std::span<T> model)
    : parts_(parts),
      settings_(std::move(settings)),
      model_(parts.optimizer, parts.run, parts.pool, model),
      ledger_(parts.run.num_clients),
      reducer_({parts.run, parts.feedback, parts.plan, parts.exchange, parts.aggregation, parts.postprocessor, parts.state, parts.shared,
                parts.pool},
               settings_.sums, settings_.times),
      absence_(settings_.absence, parts.run.num_clients, parts.run.P) {}

template <class T>
void Round<T>::play(std::uint32_t round, bool measure) {
  sample(round);
  if (cohorts_.now.cohort.empty()) {
    reducer_.skip();
    parts_.runner.skip_round(round);
    return;
  }
  open(round, measure);
  for (int phase = 0; phase < parts_.exchange.num_phases(); ++phase) collect(phase);
  reducer_.receive(view());
  parts_.shared.keep_model(parts_.downlink.reference());
  step();
  RoundView<T> closed = view();
  closed.reference = {};  // the step may have moved it
  parts_.runner.close_round(closed, this->delivered());
  absence_.receive(round, cohorts_.now.cohort, this->delivered());
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

template <class T>
void Round<T>::step() {
  model_.step(order_.round, order_.step_size, reducer_.estimate(), reducer_.averaged());
  if (!parts_.run.kinds.kept.empty()) note_kept();
}

// Clients keep the values that they have; the model has the mean of all clients', by w_i, for its measures.
template <class T>
void Round<T>::note_kept() {
  if (parts_.probe == nullptr) return;
  const std::span<double> mean = parts_.state.slot(kMeanKept);
  parts_.probe->add_kept_moves(this->delivered(), mean);
  model_.set(parts_.run.kinds.kept, mean);
}

template <class T>
std::vector<double> Round<T>::memory_sum(std::uint32_t round) {
  if (parts_.probe == nullptr) return {};
  return parts_.probe->error_memory_sum(round, absence_.rule().replaces() ? parts_.state.slot(kAbsentMean) : std::span<const double>());
}

template <class T>
void Round<T>::persist(Archive& archive) {
  model_.persist(archive);
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
  parts_.downlink.send(parts_.pool.exec(0), round, model_.model(), cohorts_.now.cohort, parts_.shared, ledger_);
  reducer_.open(cohorts_.now);
  const double step_size = settings_.step_size * settings_.schedule.factor(round, settings_.rounds);
  order_ = {.round = round,
            .step_size = step_size,
            .server_step = parts_.postprocessor == nullptr ? model_.plain_step(step_size) : 0,
            .coin = parts_.feedback.toss(parts_.run, round),
            .measure = measure,
            .cohort = cohorts_.now.cohort};
  parts_.feedback.derive(view(), parts_.shared);
  const std::vector<T> replacement = absence_.replacement(parts_.state);
  RoundOpening<T> opening{.replacement = replacement, .model = &parts_.downlink};
  if (cohorts_.next_round != 0) opening.next_cohort = cohorts_.next.cohort;
  parts_.runner.open_round(view(), opening);
}

// One phase: messages from every client, their bits, their weighted sums. Clients learn the means of channels that go on.
template <class T>
void Round<T>::collect(int phase) {
  MessageBatch<T> batch = [&] {
    const ScopedTimer timer(seconds_in(settings_.times, &RoundTimes::exchange_s));
    return parts_.runner.exchange(view(), phase);
  }();
  reducer_.take(view(), phase, std::move(batch), parts_.runner, [this](std::size_t channel, int of_phase, std::span<const T> mean) {
    parts_.downlink.charge_phase(mean.size(), cohorts_.now.cohort, ledger_);
    parts_.runner.learn_mean(channel, of_phase, mean);
  });
  for (const ClientMessage<T>& message : reducer_.messages())
    ledger_.count_message(message.client, message.bits, message.channel_bits, message.averaged_bits);
}

template class Round<float>;
template class Round<double>;

}  // namespace fl
