#include "python/src/feedback_rounds.hpp"

#include <algorithm>
#include <cstdint>

#include "fl_core/config/key_error.hpp"
#include "python/src/require_finite.hpp"
#include "scenarios/experiment/part_checks.hpp"
#include "study/machine/memory.hpp"

namespace fl::python {

namespace {

constexpr const char* kLocal = "gradient";  // a local update that sends one vector

// The parts of a scenario that a method is made from.
Scenario scenario_of(const FeedbackSettings& settings) {
  Scenario scenario;
  scenario.seeds.compressor = settings.seed;
  scenario.local.options = Registry::instance().default_options("local_update", kLocal);
  scenario.feedback_up = {settings.kind, settings.options};
  scenario.postprocessor.options = Registry::instance().default_options("postprocessor", scenario.postprocessor.kind);
  scenario.up[""].unit = settings.unit;
  for (const ChannelOperator& one : settings.operators)
    scenario.up[one.channel] = {
        .part = {one.kind, one.options}, .unit = settings.unit, .scope = one.scope, .bucket = one.bucket, .exclude = {}};
  return scenario;
}

template <class T>
void check_operators(const Scenario& scenario, const RunMethod<T>& method, const FeedbackNeeds& needs) {
  FeedbackCombination combination;
  combination.local_update = kLocal;
  combination.unit = method.unit;
  combination.channels = {"model"};
  for (const ExchangeChannel<T>& channel : method.exchange.channels) {
    combination.contracts.push_back(channel.compressor->contract(channel.scope));
    combination.operators.push_back(scenario.compressor_up(channel.name).part.kind);
  }
  combination.num_phases = method.exchange.num_phases();
  Problems problems;
  for (const Contract& contract : combination.contracts) {
    check_followed_steps(contract.domain, "", method.unit, problems);
    if (contract.domain.follows_local_total && method.unit == Unit::update)
      problems.push_back({"",
                          "rule = \"gamma_steps\" multiplies by a number of local steps, which only the simulator knows: take rule = "
                          "\"gamma\", and multiply the step size or the operator's number by it"});
  }
  check_needs(needs, method.plan, combination, problems);
  if (combination.num_phases > 1)
    problems.push_back({"",
                        "this operator sends in phases, between which every client learns the mean of all messages: only the simulator "
                        "does that; fedbits.Memory keeps the error of one client"});
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

// Throws ConfigError if the state that is there from the beginning, of the server and in common, takes more memory than there is.
void require_memory(const FeedbackPlan& plan, std::size_t P) {
  const auto is_there = [](const SlotSpec& slot) { return slot.owner == SlotOwner::server || slot.owner == SlotOwner::shared; };
  const auto vectors = 1 + std::ranges::count_if(plan.slots, is_there);  // and the estimate
  const double bytes = static_cast<double>(vectors) * static_cast<double>(P) * sizeof(double);
  if (bytes > static_cast<double>(available_memory_bytes()))
    throw ConfigError("a server with vectors of " + std::to_string(P) + " numbers needs " +
                      std::to_string(static_cast<std::uint64_t>(bytes / 1e9)) + " GB, which this machine does not have");
}

// Returns the weights of a cohort: those that were given, or w_i over their sum, or w_i itself for all clients.
std::vector<double> cohort_weights(std::span<const double> given, std::span<const double> population, std::size_t num_clients) {
  if (!given.empty() && given.size() != population.size())
    throw Error("there are " + std::to_string(given.size()) + " weights for the messages of " + std::to_string(population.size()) +
                " clients");
  const std::span<const double> chosen = given.empty() ? population : given;
  std::vector<double> weights(chosen.begin(), chosen.end());
  if (!given.empty() || weights.size() == num_clients) return weights;
  double sum = 0;
  for (const double w : weights) sum += w;
  for (double& w : weights) w *= 1 / sum;
  return weights;
}

}  // namespace

void require_no_simulator(const std::string& kind, const FeedbackPlan& plan, const FeedbackNeeds& needs) {
  const auto refuse = [&kind](const std::string& why) { throw ConfigError("'" + kind + "' works in the simulator alone: " + why); };
  if (needs.subtracts_optimum) refuse("its clients subtract their gradients at the optimum");
  if (!needs.local_kind.empty() && needs.local_kind != kLocal)
    refuse("its clients compute what local kind \"" + needs.local_kind + "\" sends");
  const auto is_seldom_used = [](const ChannelSpec& channel) { return channel.every != 1; };
  if (needs.own_models || !plan.offset_slot.empty() || std::ranges::any_of(plan.channels, is_seldom_used))
    refuse("its clients compute at models of their own");
  if (needs.contracting_downlink) refuse("it compresses the models that the server sends");
  const auto follows_models = [](const SlotSpec& slot) { return slot.owner == SlotOwner::shared && slot.sync == SlotSync::derived; };
  if (std::ranges::any_of(plan.slots, follows_models)) refuse("its clients compare the models of past rounds");
}

template <class T>
FeedbackRounds<T>::FeedbackRounds(const FeedbackSettings& settings)
    : shared_(layers_of(settings.tensors).size()),
      server_(settings.weights.size(), layers_of(settings.tensors).size()),
      given_(layers_of(settings.tensors).size()),
      sum_(make_part<AggregationRule>("aggregation", "mean", Registry::instance().default_options("aggregation", "mean"), Device::cpu,
                                      Precision::float64)) {
  const LayerTable layers = layers_of(settings.tensors);
  for (const ChannelOperator& one : settings.operators) require_few_buckets(layers.size(), one.scope, static_cast<std::size_t>(one.bucket));
  FeedbackSettings complete = settings;
  const auto feedback = make_part<Feedback<T>>("feedback", settings.kind, settings.options, Device::cpu, kPrecisionOf<T>);
  needs_ = feedback->needs();
  require_no_simulator(settings.kind, feedback->plan(), needs_);
  if (!complete.unit) complete.unit = needs_.units.empty() ? Unit::gradient : needs_.units.front();
  const Scenario scenario = scenario_of(complete);
  method_ = make_method<T>(scenario, layers, settings.weights.size(), Device::cpu);
  check_operators(scenario, method_, needs_);
  run_.unit = method_.unit;
  run_.seeds.compressor = settings.seed;
  run_.num_clients = settings.weights.size();
  run_.P = layers.size();
  run_.weights = settings.weights;
  require_memory(method_.plan, run_.P);
  clients_ = std::make_unique<ClientState<T>>(run_.num_clients, 1, run_.P);
  clients_->allow_waves(run_.num_clients);
  declare_slots<T>(method_, run_, {.clients = clients_.get(), .shared = &shared_, .server = &server_});
  runner_ = std::make_unique<BlockRunner<T>>(
      BlockRunnerParts<T>{*method_.local, *method_.feedback, method_.exchange, nullptr, pool_, *clients_, shared_, {}, &given_}, 1,
      BlockRunnerOptions{.counts_bits = false, .kinds = run_.kinds});
  process_ = std::make_unique<ClientProcess<T>>(parts(), AbsenceRule{}, false, run_.num_clients);
  reducer_ = std::make_unique<Reducer<T>>(
      ReducerParts<T>{run_, *method_.feedback, method_.plan, method_.exchange, *sum_, nullptr, server_, shared_, pool_}, Device::cpu,
      nullptr);
  order_.round = 1;
}

template <class T>
std::vector<std::string> FeedbackRounds<T>::channels() const {
  std::vector<std::string> names;
  for (const ExchangeChannel<T>& channel : method_.exchange.channels) names.push_back(channel.name);
  return names;
}

template <class T>
Contract FeedbackRounds<T>::contract(std::size_t channel) const {
  const ExchangeChannel<T>& one = method_.exchange.channels[channel];
  return one.compressor->contract(one.scope);
}

template <class T>
std::vector<std::uint32_t> FeedbackRounds<T>::cohort() const {
  std::vector<std::uint32_t> clients;
  for (const auto& [client, _] : entries_) clients.push_back(client);
  return clients;
}

template <class T>
typename FeedbackRounds<T>::Message FeedbackRounds<T>::send(std::uint32_t client, std::span<const T> vector, double step_size,
                                                            Input input) {
  const std::lock_guard lock(mutex_);
  if (input == Input::unknown) require_finite(vector, "the vector");
  if (client >= run_.num_clients)
    throw Error("client is " + std::to_string(client) + "; there are " + std::to_string(run_.num_clients) + ", from 0");
  if (!is_open()) open(step_size);
  if (step_size != order_.step_size) throw Error("the step size changes within round " + std::to_string(order_.round));
  if (entries_.contains(client))
    throw Error("client " + std::to_string(client) + " has sent in round " + std::to_string(order_.round) + "; receive() closes it");
  Entry entry{.order = order_, .batch = {}};
  entry.order.cohort = {client};
  process_->open_round(view(entry.order), {});
  given_.set(vector);
  entry.batch = process_->exchange(view(entry.order), 0);
  if (entry.batch.messages.front().refused) {
    close(entry.order, false);
    throw Overflow(kNotFinite);
  }
  return message_of(entries_[client] = std::move(entry));
}

template <class T>
void FeedbackRounds<T>::open(double step_size) {
  order_.step_size = step_size;
  order_.coin = method_.feedback->toss(run_, order_.round);
}

// Ends the round for one client, whose state moves if its message has arrived.
template <class T>
void FeedbackRounds<T>::close(const RoundOrder& order, bool has_arrived) {
  const std::uint8_t delivered[] = {has_arrived ? std::uint8_t{1} : std::uint8_t{0}};
  process_->close_round(view(order), delivered);
}

// Returns the message with its channels' memory, which stays with it after the round.
template <class T>
typename FeedbackRounds<T>::Message FeedbackRounds<T>::message_of(const Entry& entry) const {
  auto message = std::make_shared<Sent<T>>();
  message->are_channels = true;
  for (std::size_t c = 0; c < method_.exchange.channels.size(); ++c) {
    const ExchangeChannel<T>& channel = method_.exchange.channels[c];
    const MessageLevels known = channel.compressor->known_levels(channel.context(view(entry.order), 0, entry.order.cohort), channel.scope);
    message->parts.push_back({{entry.batch.memory, entry.batch.contents[c].front()}, channel.scope, known});
  }
  return message;
}

template <class T>
void FeedbackRounds<T>::discard(std::uint32_t client) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(client);
  if (found == entries_.end()) throw Error("client " + std::to_string(client) + " has not sent in round " + std::to_string(order_.round));
  close(found->second.order, false);
  entries_.erase(found);
}

template <class T>
void FeedbackRounds<T>::require_cohort(std::size_t size) const {
  if (size == 0) throw Error("no client has sent in round " + std::to_string(order_.round));
  const bool needs_all = needs_.every_client || (!needs_.all_at_first.empty() && order_.round == 1);
  if (needs_all && size < run_.num_clients)
    throw Error(needs_.name + " needs a message of every client in " + (needs_.every_client ? "every" : "the first") + " round; " +
                std::to_string(size) + " of " + std::to_string(run_.num_clients) + " have sent");
}

template <class T>
void FeedbackRounds<T>::receive(std::span<const double> weights, std::span<double> estimate) {
  const std::lock_guard lock(mutex_);
  require_cohort(entries_.size());
  reduce(weights, estimate);
  for (const auto& [_, entry] : entries_) close(entry.order, true);
  entries_.clear();
  ++order_.round;
}

// Joins the messages of the clients to the batch of the round's cohort, and makes the estimate of it.
template <class T>
void FeedbackRounds<T>::reduce(std::span<const double> weights, std::span<double> estimate) {
  RoundOrder order = order_;
  RoundPlan plan;
  const auto messages = std::make_shared<std::vector<ClientMessage<T>>>();
  MessageBatch<T> batch;
  batch.contents.resize(method_.exchange.channels.size());
  for (const auto& [client, entry] : entries_) {
    order.cohort.push_back(client);
    plan.population_weight.push_back(run_.weights[client]);
    messages->push_back(entry.batch.messages.front());
    for (std::size_t c = 0; c < batch.contents.size(); ++c) batch.contents[c].push_back(entry.batch.contents[c].front());
  }
  plan.cohort = order.cohort;
  plan.cohort_weight = cohort_weights(weights, plan.population_weight, run_.num_clients);
  batch.averaged.resize(entries_.size());
  batch.messages = *messages;
  batch.memory = messages;
  reducer_->open(plan, estimate);
  reducer_->take(view(order), 0, std::move(batch), *process_, {});
  reducer_->receive(view(order));
}

template <class T>
bool FeedbackRounds<T>::read_error(std::uint32_t client, std::span<T> out) {
  const std::lock_guard lock(mutex_);
  if (method_.plan.error_slot.empty()) return false;
  std::ranges::fill(out, T(0));
  std::ranges::copy(clients_->peek(method_.plan.error_slot, client), out.begin());  // empty: zero
  return true;
}

template <class T>
void FeedbackRounds<T>::persist(Archive& archive) {
  const std::lock_guard lock(mutex_);
  if (is_open()) throw Error("round " + std::to_string(order_.round) + " is open; receive() closes it");
  archive.section("feedback");
  archive.value(order_.round);
  process_->persist(archive);
  shared_.persist(archive);
  server_.persist(archive);
}

template class FeedbackRounds<float>;
template class FeedbackRounds<double>;

}  // namespace fl::python
