#include "python/src/feedback_rounds.hpp"

#include <algorithm>
#include <cstdint>

#include "compressors/codec/finite.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/ops/message_sums.hpp"
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
    : shared_(layers_of(settings.tensors).size()), server_(settings.weights.size(), layers_of(settings.tensors).size()) {
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
  clients_ = std::make_unique<ClientState<T>>(run_.num_clients, run_.num_clients, run_.P);
  declare_slots<T>(method_, run_, {.clients = clients_.get(), .shared = &shared_, .server = &server_});
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
  for (const std::size_t position : positions()) clients.push_back(entries_[position].client);
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
  const std::size_t position = place_of(client);
  clients_->open_round(order_.cohort);
  make_message(position, vector);
  require_finite_message(entries_[position]);
  entries_[position].counts = true;
  return entries_[position].sent;
}

// Returns the position of a client in this round. It has one if its message was discarded or failed.
template <class T>
std::size_t FeedbackRounds<T>::place_of(std::uint32_t client) {
  const auto found = std::ranges::find(entries_, client, &Entry::client);
  if (found == entries_.end()) {
    entries_.push_back({.client = client, .sent = nullptr, .payloads = {}});
    order_.cohort.push_back(client);
    return entries_.size() - 1;
  }
  if (found->counts)
    throw Error("client " + std::to_string(client) + " has sent in round " + std::to_string(order_.round) + "; receive() closes it");
  return static_cast<std::size_t>(found - entries_.begin());
}

template <class T>
bool FeedbackRounds<T>::is_open() const {
  return std::ranges::any_of(entries_, &Entry::counts);
}

template <class T>
void FeedbackRounds<T>::open(double step_size) {
  order_.step_size = step_size;
  order_.coin = method_.feedback->toss(run_, order_.round);
}

// Returns the block of one client at its position.
template <class T>
ClientBlock<T> FeedbackRounds<T>::block_of(std::size_t position) {
  Entry& entry = entries_[position];
  ClientBlock<T> block;
  block.first = static_cast<std::uint32_t>(position);
  block.K = 1;
  block.clients = {&entry.client, 1};
  block.work = {&work_, 1};
  for (Payload<T>*& payload : entry.payloads) block.messages.push_back({&payload, 1});
  const std::string& slot = method_.plan.in_place_slot;
  if (slot.empty()) room_.resize_discard(run_.P);
  block.vectors.push_back(slot.empty() ? rows_view(room_.data(), 1, run_.P) : block.shadow(*clients_, slot));
  return block;
}

template <class T>
void FeedbackRounds<T>::make_message(std::size_t position, std::span<const T> vector) {
  Entry& entry = entries_[position];
  entry.sent = std::make_shared<Sent<T>>(pool_of_payloads_);
  entry.payloads.clear();
  entry.sent->are_channels = true;
  for (const ExchangeChannel<T>& channel : method_.exchange.channels) entry.sent->add(channel.scope, {});
  for (auto& part : entry.sent->parts) entry.payloads.push_back(&part.payload);
  const ClientBlock<T> block = block_of(position);
  Given given{.vector = vector, .room = block.vectors[0]};
  if (!method_.plan.host_walks.empty()) {
    std::ranges::copy(given.vector, given.room.row(0));
    given.is_there = true;
  }
  for (std::size_t c = 0; c < entry.payloads.size(); ++c) send_channel(block, c, given);
  // A slot for the vector itself.
  if (!given.is_there && !method_.plan.in_place_slot.empty()) std::ranges::copy(given.vector, given.room.row(0));
}

// Compresses one channel. Where the feedback only builds views (FeedbackPlan::host_walks), the array of the caller takes the place of its
// copy in the input.
template <class T>
void FeedbackRounds<T>::send_channel(const ClientBlock<T>& block, std::size_t c, Given& given) {
  const ExchangeChannel<T>& channel = method_.exchange.channels[c];
  const ClientRound<T> round = client_round();
  const Exec& exec = pool_.exec(0);
  auto& part = entries_[block.first].sent->parts[c];
  Send<T> send = method_.feedback->prepare(exec, round, block, c);
  for (int a = 0; a < send.input.num_terms && !given.is_there; ++a)
    if (send.input.term[a].row(0) == given.room.row(0)) send.input.term[a] = rows_view(given.vector.data(), 1, run_.P);
  Conversation<T> conversation(send.dense ? *channel.dense : *channel.compressor, channel.scope, channel.random_key, {});
  const CompressContext<T> known = channel.context(round, 0, block.clients);
  conversation.open(known.round, known.steps);
  part.known = channel.compressor->known_levels(known, channel.scope);
  Senders<T> senders{.clients = block.clients, .input = send.input, .state = send.state};
  if (!channel.client_slot.empty()) {
    senders.remembered = block.stored(*clients_, channel.client_slot);
    senders.remember = block.shadow(*clients_, channel.client_slot);
    if (send.dense) std::copy_n(senders.remembered.row(0), senders.remembered.P, senders.remember.row(0));
  }
  conversation.send(exec, senders, block.messages[c]);
  given.is_there = given.is_there || (send.state.rule != StateRule::none && send.state.out.row(0) == given.room.row(0));
  method_.feedback->after_compress(exec, round, block, c, send, method_.exchange);
}

template <class T>
void FeedbackRounds<T>::require_finite_message(const Entry& entry) const {
  for (const auto& part : entry.sent->parts)
    if (!part.is_finite()) throw Overflow("the message is not finite, because a norm, a sum or a narrower format overflows");
}

template <class T>
void FeedbackRounds<T>::discard(std::uint32_t client) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.client != client || !entry.counts) continue;
    entry.counts = false;
    return;
  }
  throw Error("client " + std::to_string(client) + " has not sent in round " + std::to_string(order_.round));
}

template <class T>
std::vector<std::size_t> FeedbackRounds<T>::positions() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].counts) all.push_back(i);
  std::ranges::sort(all, {}, [this](std::size_t position) { return entries_[position].client; });
  return all;
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
  const std::vector<std::size_t> arrived = positions();
  require_cohort(arrived.size());
  aggregate(arrived, weights, estimate);
  for (const std::size_t position : arrived) acknowledge(position);
  entries_.clear();
  order_.cohort.clear();
  ++order_.round;
}

// Sums the messages of each channel by both kinds of weights, and lets the feedback make the estimate of them.
template <class T>
void FeedbackRounds<T>::aggregate(std::span<const std::size_t> positions, std::span<const double> weights, std::span<double> estimate) {
  RoundOrder sorted = order_;
  sorted.cohort.clear();
  std::vector<double> population;
  for (const std::size_t position : positions) sorted.cohort.push_back(entries_[position].client);
  for (const std::uint32_t client : sorted.cohort) population.push_back(run_.weights[client]);
  const std::vector<double> cohort = cohort_weights(weights, population, run_.num_clients);
  const bool needs_population = method_.plan.needs_population && cohort != population;

  const std::size_t C = method_.exchange.channels.size();
  const bool is_estimate = method_.plan.estimate_is_sum && C == 1;
  std::vector<std::vector<const Payload<T>*>> messages(C);
  std::vector<std::vector<double>> sums(C), sums_of_population(C);
  std::vector<Aggregate> aggregates(C);
  std::vector<ArrivedMessages<T>> arrived;
  for (std::size_t c = 0; c < C; ++c) {
    const Scope& scope = method_.exchange.channels[c].scope;
    for (const std::size_t position : positions) messages[c].push_back(entries_[position].payloads[c]);
    arrived.push_back({scope, messages[c]});
    if (is_estimate) return aggregator_.sum(messages[c], cohort, scope, estimate);
    sums[c].resize(run_.P);
    aggregator_.sum(messages[c], cohort, scope, sums[c]);
    aggregates[c] = {sums[c], sums[c]};
    if (!needs_population) continue;
    sums_of_population[c].resize(run_.P);
    aggregator_.sum(messages[c], population, scope, sums_of_population[c]);
    aggregates[c].population = sums_of_population[c];
  }
  method_.feedback->receive({RoundView<T>{run_, sorted, {}}, cohort, population, arrived, server_, shared_}, aggregates, estimate);
}

// Moves the state of a client whose message has arrived, as BlockRunner does.
template <class T>
void FeedbackRounds<T>::acknowledge(std::size_t position) {
  const ClientBlock<T> block = block_of(position);
  const ClientRound<T> round = client_round();
  for (const StateMove& move : method_.plan.moves) {
    const ExchangeChannel<T>& channel = method_.exchange.channels[move.channel];
    const Payload<T>* const message[] = {block.messages[move.channel][0]};
    add_messages<T>(pool_.exec(0), message, channel.scope, static_cast<T>(move.factor), block.stored(*clients_, move.slot));
  }
  method_.feedback->acknowledge(round, block, 0, method_.exchange);
  for (std::size_t c = 0; c < method_.exchange.channels.size(); ++c) {
    const ExchangeChannel<T>& channel = method_.exchange.channels[c];
    if (!channel.client_slot.empty() && !block.messages[c][0]->silent) clients_->swap(channel.client_slot, block.first);
  }
  clients_->set_acknowledged(entries_[position].client, order_.round);
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
  clients_->persist(archive);
  shared_.persist(archive);
  server_.persist(archive);
}

template class FeedbackRounds<float>;
template class FeedbackRounds<double>;

}  // namespace fl::python
