#include "server/async_rounds.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "fl_core/random/random.hpp"

namespace fl {

template <class T>
AsyncRounds<T>::AsyncRounds(RoundParts<T> parts, RoundSettings settings, const AsyncRule& rule, RoundClock& clock, std::span<T> model)
    : parts_(parts),
      settings_(std::move(settings)),
      rule_(rule),
      clock_(clock),
      model_(parts.optimizer, parts.run, parts.pool, model),
      ledger_(parts.run.num_clients),
      reducer_({parts.run, parts.feedback, parts.plan, parts.exchange, parts.aggregation, parts.postprocessor, parts.state, parts.shared,
                parts.pool},
               settings_.sums, settings_.times),
      absence_(settings_.absence, parts.run.num_clients, parts.run.P) {}

template <class T>
void AsyncRounds<T>::play(std::uint32_t round, bool) {
  ledger_.open_round();
  fill();
  while (buffer_.size() < rule_.buffer() && !flights_.empty()) {
    land(flights_.take());
    const bool is_full = buffer_.size() == rule_.buffer();
    if (!is_full && (!rule_.refills_at_steps() || flights_.empty())) fill();
  }
  if (buffer_.empty()) {
    reducer_.skip();
    plan_ = {};
    clock_.skip();
    return;
  }
  reduce();
  step();
  for (std::size_t i = 0; i < buffer_.size(); ++i) end(buffer_[i], this->delivered()[i] != 0);
  absence_.receive(round, plan_.cohort, this->delivered());
  buffer_.clear();
  ledger_.close_round();
}

// Lets clients begin at the free places. The server waits for clients only if nobody is at work.
template <class T>
void AsyncRounds<T>::fill() {
  std::vector<std::uint32_t> clients = free_clients();
  if (clients.empty() && flights_.empty()) {
    wait_for_clients();
    clients = free_clients();
  }
  if (!clients.empty()) begin(clients);
}

template <class T>
bool AsyncRounds<T>::can_begin(std::uint32_t client) const {
  const auto is_it = [client](const Flight<T>& flight) { return flight.client() == client; };
  return !flights_.contains(client) && std::ranges::none_of(buffer_, is_it) && clock_.is_here(client);
}

// Returns clients for the free places, ascending. Where nobody is at work they are the cohort that [participation] samples for a round;
// otherwise they are drawn uniformly from the clients that have nothing to do.
template <class T>
std::vector<std::uint32_t> AsyncRounds<T>::free_clients() {
  const auto N = static_cast<std::uint32_t>(parts_.run.num_clients);
  const std::size_t places = parts_.participation.cohort_size(N) - flights_.size();
  std::vector<std::uint32_t> chosen;
  if (flights_.empty() && buffer_.empty()) {
    RoundPlan plan;
    parts_.participation.sample(version_ + 1, parts_.run.seeds.sampling, parts_.run.weights, plan);
    std::ranges::copy_if(plan.cohort, std::back_inserter(chosen), [this](std::uint32_t client) { return can_begin(client); });
    return chosen;
  }
  RandomSequence random(parts_.run.seeds.sampling, Purpose::asynchronous, 0, static_cast<std::uint32_t>(events_));
  const auto is_free = [&](std::uint32_t client) { return std::ranges::find(chosen, client) == chosen.end() && can_begin(client); };
  // A few draws find a free client wherever most clients are free; else the first free one after the last draw is taken.
  constexpr int kDraws = 16;
  while (chosen.size() < places) {
    auto client = static_cast<std::uint32_t>(random.below(N));
    for (int i = 1; i < kDraws && !is_free(client); ++i) client = static_cast<std::uint32_t>(random.below(N));
    std::uint32_t tried = 0;
    while (tried < N && !is_free(client)) {
      client = (client + 1) % N;
      ++tried;
    }
    if (tried == N) break;
    chosen.push_back(client);
  }
  std::ranges::sort(chosen);
  return chosen;
}

template <class T>
void AsyncRounds<T>::wait_for_clients() {
  std::vector<std::uint32_t> idle;
  for (std::uint32_t client = 0; client < parts_.run.num_clients; ++client) {
    const auto is_it = [client](const Flight<T>& flight) { return flight.client() == client; };
    if (std::ranges::none_of(buffer_, is_it)) idle.push_back(client);
  }
  static_cast<void>(clock_.wait_for_any(idle));
}

template <class T>
RoundOrder AsyncRounds<T>::order_of(std::uint32_t client) const {
  const double step_size = settings_.step_size * settings_.schedule.factor(version_ + 1, settings_.rounds);
  return {.round = static_cast<std::uint32_t>(events_),
          .step_size = step_size,
          .server_step = parts_.postprocessor == nullptr ? model_.plain_step(step_size) : 0,
          .coin = parts_.feedback.toss(parts_.run, static_cast<std::uint32_t>(events_)),
          .cohort = {client}};
}

// Sends the present model to clients, which begin.
template <class T>
void AsyncRounds<T>::begin(const std::vector<std::uint32_t>& clients) {
  ++events_;
  std::vector<std::uint64_t> before;
  for (const std::uint32_t client : clients) before.push_back(ledger_.client_down_bits()[client]);
  parts_.downlink.send(parts_.pool.exec(0), static_cast<std::uint32_t>(events_), model_.model(), clients, parts_.shared, ledger_);
  const std::span<const T> w = parts_.downlink.reference();
  const auto model = std::make_shared<const std::vector<T>>(w.begin(), w.end());
  for (std::size_t i = 0; i < clients.size(); ++i) {
    Flight<T> flight{.order = order_of(clients[i]), .model = model, .version = version_, .began_s = clock_.now_s()};
    start(flight);
    const ClientMessage<T>& message = flight.batch.messages.front();
    const LoneMessage times =
        clock_.alone(clients[i], flight.order.round, ledger_.client_down_bits()[clients[i]] - before[i], message.bits.bits);
    flight.ends_s = times.ends_s;
    flight.arrives = times.arrives;
    flight.times = times.times;
    flights_.add(std::move(flight));
  }
}

// Lets the client of a flight compute. Its message is known from then on; its state is that from before.
template <class T>
void AsyncRounds<T>::start(Flight<T>& flight) {
  RoundOpening<T> opening{.model = &parts_.downlink};
  parts_.runner.open_round(view(flight), opening);
  const ScopedTimer timer(seconds_in(settings_.times, &RoundTimes::exchange_s));
  flight.batch = parts_.runner.exchange(view(flight), 0);
}

// Takes what a client has done: its message waits in the buffer, or the client has left.
template <class T>
void AsyncRounds<T>::land(Flight<T> flight) {
  clock_.advance_to(flight.ends_s);
  if (!flight.arrives) return end(flight, false);
  const ClientMessage<T>& message = flight.batch.messages.front();
  ledger_.count_message(message.client, message.bits, message.channel_bits, message.averaged_bits);
  buffer_.push_back(std::move(flight));
}

template <class T>
void AsyncRounds<T>::end(Flight<T>& flight, bool counts) {
  const std::uint8_t delivered[] = {counts ? std::uint8_t{1} : std::uint8_t{0}};
  parts_.runner.close_round(view(flight), delivered);
}

// Joins the messages of the buffer to those of a round, by client, and makes the estimate of them.
template <class T>
void AsyncRounds<T>::reduce() {
  std::ranges::sort(buffer_, {}, [](const Flight<T>& flight) { return flight.client(); });
  RoundOrder order = order_of(0);
  order.round = version_ + 1;
  order.cohort.clear();
  plan_ = {};
  double bits = 0;
  const auto messages = std::make_shared<std::vector<ClientMessage<T>>>();
  MessageBatch<T> batch;
  batch.contents.resize(parts_.exchange.channels.size());
  for (const Flight<T>& flight : buffer_) {
    order.cohort.push_back(flight.client());
    messages->push_back(flight.batch.messages.front());
    bits += static_cast<double>(messages->back().bits.bits);
    batch.averaged.push_back(flight.batch.averaged.front());
    for (std::size_t c = 0; c < batch.contents.size(); ++c) batch.contents[c].push_back(flight.batch.contents[c].front());
  }
  batch.messages = *messages;
  batch.memory = messages;
  plan_.cohort = order.cohort;
  weigh_buffer();
  residual_age_ = absence_.residual_age(version_ + 1, plan_.cohort);
  clock_.close_buffer(buffer_times(), bits);
  const RoundView<T> round{parts_.run, order, parts_.downlink.reference()};
  reducer_.open(plan_);
  reducer_.take(round, 0, std::move(batch), parts_.runner, {});
  reducer_.receive(round);
}

// The weights of the buffer: w_i over their sum, or w_i itself for all clients, or 1/M; times the function of each message's staleness.
template <class T>
void AsyncRounds<T>::weigh_buffer() {
  weigh(parts_.run.weights, CohortEstimate::normalised, 1, plan_);
  if (plan_.cohort.size() == parts_.run.num_clients) plan_.cohort_weight = parts_.run.weights;
  if (parts_.run.average == Average::uniform) plan_.cohort_weight.assign(plan_.cohort.size(), 1 / static_cast<double>(plan_.cohort.size()));
  if (rule_.mixing()) return;  // it mixes by staleness
  for (std::size_t i = 0; i < buffer_.size(); ++i) plan_.cohort_weight[i] *= rule_.weight(version_ - buffer_[i].version);
}

template <class T>
RoundTimeline AsyncRounds<T>::buffer_times() const {
  RoundTimeline times{.opened_s = clock_.last().ended_s, .closed_s = clock_.now_s()};
  for (const Flight<T>& flight : buffer_) {
    times.cohort.push_back(flight.client());
    times.clients.push_back(flight.times);
  }
  return times;
}

template <class T>
void AsyncRounds<T>::step() {
  const RoundOrder order = order_of(0);
  std::span<const double> estimate = reducer_.estimate();
  if (rule_.mixing() && this->delivered().front() != 0) estimate = mix(model_.factor(order.step_size));
  model_.step(version_ + 1, order.step_size, estimate, reducer_.averaged());
  ++version_;
}

// FedAsync: x <- (1 - a) x + a y with the client's model y = w - f c, its model w at the beginning and a = alpha s(tau). As a step of
// length f along a ((x - w) / f + c).
template <class T>
std::span<const double> AsyncRounds<T>::mix(double factor) {
  const Flight<T>& flight = buffer_.front();
  const double a = *rule_.mixing() * rule_.weight(version_ - flight.version);
  const std::span<const double> estimate = reducer_.estimate();
  const std::span<const T> x = model_.model();
  mixed_.resize(estimate.size());
  for (std::size_t j = 0; j < mixed_.size(); ++j)
    mixed_[j] = a * ((static_cast<double>(x[j]) - static_cast<double>((*flight.model)[j])) / factor + estimate[j]);
  return mixed_;
}

template <class T>
void AsyncRounds<T>::persist(Archive& archive) {
  model_.persist(archive);
  parts_.downlink.persist(archive);
  ledger_.persist(archive);
  absence_.persist(archive);
  parts_.runner.persist(archive);
  parts_.shared.persist(archive);
  parts_.state.persist(archive);
  clock_.persist(archive);
  archive.section("flights");
  archive.value(events_);
  archive.value(version_);
  persist_flights(archive);
}

// A flight is stored without its message, because its client computes the same one again: its state is that from before, and its model is
// stored.
template <class T>
void AsyncRounds<T>::persist_flights(Archive& archive) {
  std::vector<Flight<T>> flights;
  for (const auto& [_, flight] : flights_.all()) flights.push_back(flight);
  std::ranges::stable_sort(flights, {}, [](const Flight<T>& flight) { return flight.order.round; });
  std::shared_ptr<const std::vector<T>> last;
  archive.list_of(flights, [&](Flight<T>& flight) {
    archive.value(flight.order.round);
    archive.value(flight.order.step_size);
    archive.value(flight.order.server_step);
    archive.value(flight.order.coin);
    archive.list(flight.order.cohort);
    archive.value(flight.version);
    archive.value(flight.began_s);
    archive.value(flight.ends_s);
    archive.value(flight.arrives);
    archive.value(flight.times);
    bool is_another = flight.model != last;
    archive.value(is_another);
    if (archive.is_reading() && (flight.order.cohort.size() != 1 || flight.client() >= parts_.run.num_clients || (!is_another && !last)))
      throw ArchiveError("in 'flights': a client that is at work has no model, or is none of the run's");
    std::vector<T> model = is_another && !archive.is_reading() ? *flight.model : std::vector<T>(parts_.run.P);
    if (is_another) archive.array(std::span(model));
    if (archive.is_reading()) flight.model = is_another ? std::make_shared<const std::vector<T>>(std::move(model)) : last;
    last = flight.model;
  });
  if (!archive.is_reading()) return;
  flights_.clear();
  for (Flight<T>& flight : flights) {
    start(flight);
    flights_.add(std::move(flight));
  }
}

template <class T>
void AsyncRounds<T>::require_nothing_after(std::uint32_t round) const {
  if (version_ > round)
    throw ArchiveError("in 'flights': it refers to step " + std::to_string(version_) + ", the run has taken " + std::to_string(round));
  if (parts_.downlink.last_round() > events_)
    throw ArchiveError("in 'downlink': it refers to message " + std::to_string(parts_.downlink.last_round()) + " of " +
                       std::to_string(events_));
}

template class AsyncRounds<float>;
template class AsyncRounds<double>;

}  // namespace fl
