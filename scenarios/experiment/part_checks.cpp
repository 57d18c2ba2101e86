#include "scenarios/experiment/part_checks.hpp"

#include <algorithm>
#include <optional>

#include "fl_core/config/key_error.hpp"
#include "fl_core/round/kept_parameters.hpp"
#include "scenarios/experiment/run_measures.hpp"
#include "scenarios/file/stop_condition.hpp"

namespace fl {

namespace {

// Returns "a" or "b", with the quotes.
std::string any_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : " or \"") + name + "\"";
  return text;
}

// Returns the error text for a column that no measure of the scenario has.
std::string unknown_stop_column(const std::string& column, const std::vector<MeasureColumn>& columns) {
  std::vector<std::string> names;
  std::string all;
  for (const MeasureColumn& one : columns) {
    names.push_back(one.name);
    all += (all.empty() ? "" : ", ") + one.name;
  }
  const std::string near = nearest_name(column, names);
  return "evaluate.measures has no column \"" + column + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?") +
         (all.empty() ? "; add the measure there" : " (its columns: " + all + ")");
}

// Adds problems for measures and stop conditions that can never be measured.
template <class T>
void check_measures(const CheckedParts<T>& parts, Problems& problems) {
  const EvaluateOptions& evaluate = parts.scenario.evaluate;
  const StopOptions& stop = parts.scenario.stop;
  const auto need = [&problems](bool holds, const char* key, const std::string& what) {
    if (!holds) problems.push_back({key, what});
  };
  const std::string gap = "needs f*: a convex model and evaluate.optimum = true, or the path of a file that holds x*";
  parts.measures.check(measured_problem(parts.problem, parts.wants_gap, parts.scenario.has_clock()), problems);
  need(!stop.f_gap || parts.wants_gap, "stop.f_gap", gap);
  need(!stop.f_gap || evaluate.train_loss, "stop.f_gap", "needs evaluate.train_loss = true, without which f - f* is not measured");
  const std::vector<MeasureColumn>& columns = parts.measures.columns();
  need(!stop.train_loss || evaluate.train_loss, "stop.train_loss",
       "needs evaluate.train_loss = true, without which the loss is not measured");
  for (const std::string& text : stop.measures)
    if (const std::optional<StopCondition> condition = parse_stop_condition(text))
      need(place_of(columns, condition->column) < columns.size(), "stop.measures", unknown_stop_column(condition->column, columns));
  need(!stop.accuracy || parts.problem.test() != nullptr, "stop.accuracy",
       "needs a test set, which data set \"" + parts.problem.train().name + "\" has not; set data.test or data.test_fraction");
  need(!stop.accuracy || parts.problem.train().num_classes > 0, "stop.accuracy",
       "needs classes, which data set \"" + parts.problem.train().name + "\" does not have");
}

template <class T>
std::string unknown_channel(const CheckedParts<T>& parts, const std::string& name) {
  std::vector<std::string> names;
  std::string all;
  for (const auto& channel : parts.method.exchange.channels) {
    names.push_back(channel.name);
    all += (all.empty() ? "" : ", ") + channel.name;
  }
  const std::string near = nearest_name(name, names);
  return "no channel of this name is sent by local kind '" + parts.scenario.local.kind + "' with feedback '" +
         parts.scenario.feedback_up.kind + "'" + (near.empty() ? "" : "; did you mean \"" + near + "\"?") + " (its channels: " + all + ")";
}

// Adds problems with what clients compute and how they send it.
template <class T>
void check_local_update(const CheckedParts<T>& parts, Problems& problems) {
  const std::vector<Unit> units = parts.method.local->units();
  if (std::find(units.begin(), units.end(), parts.method.unit) == units.end())
    problems.push_back({"compressor.up.unit", "local kind '" + parts.scenario.local.kind + "' sends \"" +
                                                  std::string(to_string(units.front())) + "\", not \"" + to_string(parts.method.unit) +
                                                  "\""});
  const std::vector<std::string> needed = parts.method.local->needs_feedback();
  if (!needed.empty() && std::find(needed.begin(), needed.end(), parts.scenario.feedback_up.kind) == needed.end())
    problems.push_back({"feedback.up.kind", "local kind '" + parts.scenario.local.kind + "' needs feedback " + any_of(needed) + ", is \"" +
                                                parts.scenario.feedback_up.kind + "\""});
}

// Returns the momentum that a part's options give, or nothing if they give none.
std::optional<double> momentum_of(const Part& part) {
  Options options = part.options;
  if (options.empty()) return std::nullopt;
  Schema schema = options.schema();
  const Field* momentum = schema.find("momentum");
  const Value value = momentum == nullptr ? Value{} : momentum->value();
  const double* beta = std::get_if<double>(&value.data);
  return beta == nullptr ? std::nullopt : std::optional(*beta);
}

// Adds problems for a local optimizer that the local update does not heed, or that says the same as a key of the local update.
template <class T>
void check_local_optimizer(const CheckedParts<T>& parts, Problems& problems) {
  const Part &optimizer = parts.scenario.local_optimizer, &local = parts.scenario.local;
  const bool is_sgd = optimizer.kind == "sgd";
  if (!parts.method.local->traits().takes_optimizer) {
    if (parts.method.local->optimizer() == nullptr) return;
    const bool has_steps = parts.method.local->step_settings().work != nullptr;
    problems.push_back({"local_optimizer.kind",
                        "'" + optimizer.kind + "'" + (is_sgd ? " with options" : "") + " does not suit local kind '" + local.kind + "', " +
                            (has_steps ? "whose theory takes the steps y <- y - gamma d: what it sends and keeps is computed from them"
                                       : "which takes no local steps") +
                            "; drop [local_optimizer], or use local.kind = \"sgd\""});
    return;
  }
  if (local.kind != "sgd" || momentum_of(local).value_or(0) == 0) return;
  if (!is_sgd)
    problems.push_back(
        {"local.momentum", "is for plain steps, and local_optimizer.kind is \"" + optimizer.kind + "\": remove local.momentum"});
  else if (momentum_of(optimizer))
    problems.push_back({"local.momentum", "local_optimizer.momentum gives the momentum too: remove local.momentum"});
}

// Returns the combination that a feedback is checked against. Adds problems for operators that error feedback cannot be used with.
template <class T>
FeedbackCombination combination_of(const CheckedParts<T>& parts, const FeedbackNeeds& needs, const ExchangeChannel<T>& down,
                                   Problems& problems) {
  FeedbackCombination combination{.local_update = parts.scenario.local.kind,
                                  .unit = parts.method.unit,
                                  .full_participation = parts.scenario.participation.part.kind == "full",
                                  .channels = parts.method.local->vectors(),
                                  .contracts = {},
                                  .operators = {},
                                  .num_phases = parts.method.exchange.num_phases(),
                                  .computes_anywhere = parts.method.local->traits().computes_anywhere,
                                  .subtracts_optimum = parts.method.local->traits().needs_optimum,
                                  .downlink = parts.scenario.down.part.kind,
                                  .downlink_contract = down.compressor->contract(down.scope),
                                  .server = parts.scenario.server.part.kind,
                                  .has_plain_server = parts.optimizer.plain_rate().has_value()};
  for (const auto& channel : parts.method.exchange.channels) {
    combination.contracts.push_back(channel.compressor->contract(channel.scope));
    combination.operators.push_back(parts.scenario.compressor_up(channel.name).part.kind);
    const std::string& no_memory = combination.contracts.back().no_memory;
    if (!no_memory.empty() && needs.keeps_error)
      problems.push_back({"feedback.up.kind",
                          "'" + combination.operators.back() + "' under feedback '" + parts.scenario.feedback_up.kind + "': " + no_memory});
  }
  return combination;
}

// Adds problems for operators that follow a step size which their input does not contain, or a number of local steps that is not given.
template <class T>
void check_follows_steps(const CheckedParts<T>& parts, const ExchangeChannel<T>& down, Problems& problems) {
  const LocalWork* work = parts.method.local->step_settings().work;
  for (const auto& channel : parts.method.exchange.channels) {
    const std::string section = parts.scenario.up.contains(channel.name) ? "compressor.up." + channel.name : "compressor.up";
    const Domain domain = channel.compressor->contract(channel.scope).domain;
    check_followed_steps(domain, section, parts.method.unit, problems);
    if (domain.follows_local_total && work != nullptr && work->epochs > 0)
      problems.push_back(
          {section,
           "rule = \"gamma_steps\" multiplies by local.steps, but with local.epochs each client has a number of steps of its "
           "own, which follows from its rows: take rule = \"gamma\""});
  }
  check_followed_steps(down.compressor->contract(down.scope).domain, "compressor.down", std::nullopt, problems);
}

// A rule that is no sum has to be all that becomes of the messages.
template <class T>
void check_aggregation(const CheckedParts<T>& parts, Problems& problems) {
  if (parts.aggregation.is_sum()) return;
  const std::string rule = "'" + parts.scenario.aggregation.kind + "' is no sum of messages";
  if (!parts.method.plan.estimate_is_sum)
    problems.push_back({"aggregation.kind", rule + ", which '" + parts.scenario.feedback_up.kind +
                                                "' adds to the server's state; feedback \"none\" and \"ef14\" keep none"});
  if (parts.method.exchange.num_phases() > 1)
    problems.push_back({"aggregation.kind", rule + ", and clients of '" + parts.scenario.compressor_up("").part.kind +
                                                "' learn the mean of a first one before they send the next"});
}

// Adds problems for methods that need the vectors or the estimate as they are.
template <class T>
void check_postprocessor(const CheckedParts<T>& parts, const FeedbackNeeds& needs, Problems& problems) {
  const PostprocessorPlan& plan = parts.method.postprocessor.plan;
  const std::string name = "'" + parts.scenario.postprocessor.kind + "'", local = "local kind '" + parts.scenario.local.kind + "'";
  const std::vector<std::string> vectors = parts.method.local->vectors();
  if (plan.changes_vectors && parts.method.local->traits().builds_on_last)
    problems.push_back({"postprocessor.kind", name + " changes what clients send, and each vector of " + local +
                                                  " builds on the one before, so that a change would stay in all that follow: use " +
                                                  "local kind \"gradient\" or \"sgd\""});
  if (plan.changes_vectors && plan.one_vector && vectors.size() > 1) {
    std::string all;
    for (const std::string& vector : vectors) all += (all.empty() ? "" : ", ") + vector;
    problems.push_back({"postprocessor.kind", name + " changes one vector of each client, and " + local +
                                                  " sends several, in units of their own (" + all +
                                                  "): use local kind \"sgd\" or \"gradient\""});
  }
  if (plan.changes_estimate && needs.plain_server)
    problems.push_back({"postprocessor.kind",
                        name + " changes the server's estimate, and feedback '" + parts.scenario.feedback_up.kind +
                            "' needs to know the length of the server's step along its own: change the clients' vectors instead, or " +
                            "use feedback \"none\" or \"ef14\""});
}

// Times of arrival come from a network, or from a clock of simulated time. What a machine measures never decides a simulated result.
template <class T>
void check_time(const CheckedParts<T>& parts, Problems& problems) {
  const Scenario& scenario = parts.scenario;
  if (!parts.has_arrivals && !scenario.has_clock() && !parts.delivery.waits_for_all())
    problems.push_back({"delivery.kind", "'" + scenario.delivery.kind +
                                             "' decides by times of arrival, which need [network] or [devices] in a simulated run; add one "
                                             "of these tables, or play the scenario over a network (fedbits serve), or take \"all\""});
  if (scenario.has_clock()) return;
  if (scenario.availability.kind != "always")
    problems.push_back({"availability.kind", "'" + scenario.availability.kind +
                                                 "' follows simulated time, which needs [network] or [devices]; add one of these tables"});
  if (scenario.stop.seconds)
    problems.push_back({"stop.seconds", "is simulated time, which needs [network] or [devices]; add one of these tables, or drop the key"});
}

// Adds problems for a method whose messages cannot be taken one by one, at different ages.
template <class T>
void check_asynchronous_method(const CheckedParts<T>& parts, const FeedbackNeeds& needs, Problems& problems) {
  const Scenario& scenario = parts.scenario;
  const std::string rule = "'" + scenario.asynchronous.kind + "'", feedback = "feedback '" + scenario.feedback_up.kind + "'";
  const auto refuse = [&](const std::string& key, const std::string& why) { problems.push_back({key, why}); };
  if (parts.method.exchange.num_phases() > 1)
    refuse("compressor.up.kind", "'" + scenario.compressor_up("").part.kind + "' works in phases, in which every client learns a mean; " +
                                     rule + " takes each client's message by itself");
  const auto is_shared = [](const SlotSpec& slot) { return slot.owner == SlotOwner::shared; };
  if (std::ranges::any_of(parts.method.plan.slots, is_shared))
    refuse("feedback.up.kind",
           feedback + " has vectors that all clients share and move together in every round, which " + rule + " does not have");
  if (std::ranges::any_of(parts.method.local->slots(), is_shared))
    refuse("local.kind", "'" + scenario.local.kind + "' has vectors that all clients share and move together in every round, which " +
                             rule + " does not have");
  if (needs.every_client || !needs.all_at_first.empty())
    refuse("feedback.up.kind", feedback + " needs a message of every client in " + (needs.every_client ? "every" : "the first") +
                                   " round, and " + rule + " has no rounds");
  if (!parts.method.plan.estimate_is_sum && !parts.asynchronous.ignores_age())
    refuse("asynchronous.staleness", feedback +
                                         " adds every message to the server's state as its client does: a message cannot count less "
                                         "because it is old; take \"constant\"");
  if (parts.asynchronous.mixing() && !parts.method.plan.estimate_is_sum)
    refuse("asynchronous.kind",
           rule + " mixes the model of one client, and " + feedback + " makes an estimate of the messages of all: use \"fedbuff\"");
  if (parts.asynchronous.mixing() && parts.optimizer.plain_rate() != 1)
    refuse("server.kind", rule + " mixes models, which is a plain step: use \"sgd\" with learning_rate = 1 and without momentum");
  if (!scenario.model.keep.empty() || scenario.server.statistics == ServerSpec::Statistics::local)
    refuse(scenario.model.keep.empty() ? "server.statistics" : "model.keep", "is not possible with " + rule + " yet; drop the key");
  if (scenario.evaluate.measure_every > 0 || scenario.evaluate.updates_every > 0)
    refuse(scenario.evaluate.measure_every > 0 ? "evaluate.measure_every" : "evaluate.updates_every",
           "compares messages that were made at one model, and those of a step with " + rule + " were not; drop the key");
  if (parts.measures.ever_needs(&MeasureCost::updates) && scenario.evaluate.updates_every == 0)
    refuse("evaluate.measures", "one of them compares updates that were made at one model, and those of a step with " + rule + " were not");
}

// Adds problems for a run that cannot be asynchronous.
template <class T>
void check_asynchronous(const CheckedParts<T>& parts, const FeedbackNeeds& needs, Problems& problems) {
  const Scenario& scenario = parts.scenario;
  if (!parts.asynchronous.is_asynchronous()) return;
  const std::string rule = "'" + scenario.asynchronous.kind + "'";
  const auto refuse = [&](const std::string& key, const std::string& why) { problems.push_back({key, why}); };
  if (parts.has_arrivals) refuse("asynchronous.kind", rule + " is played in simulated time alone: use fedbits run");
  if (!scenario.has_clock())
    refuse("asynchronous.kind", rule + " follows simulated time, which needs [network] or [devices]; add one of these tables");
  if (!parts.delivery.waits_for_all())
    refuse("delivery.kind", rule + " takes every message when it arrives, so that there is no round to close: take \"all\"");
  if (scenario.participation.part.kind != "uniform" && scenario.participation.part.kind != "full")
    refuse("participation.kind", "says how many clients are at work at the same time with " + rule + ": use \"uniform\" or \"full\"");
  if (scenario.participation.absent != AbsentState::keep)
    refuse("participation.absent", "speaks of rounds that a client has missed, and " + rule + " has none: use \"keep\"");
  const std::size_t places = parts.participation.cohort_size(parts.problem.shards().size());
  if (parts.asynchronous.buffer() > places)
    refuse("asynchronous.buffer", "is " + std::to_string(parts.asynchronous.buffer()) + ", more than the " + std::to_string(places) +
                                      " clients that are at work ([participation]): the server would never step");
  if (scenario.server_timing.down || scenario.server_timing.up)
    refuse(scenario.server_timing.down ? "network.server_down" : "network.server_up",
           "is shared by the messages of a round, and " + rule + " has none; drop the key");
  check_asynchronous_method(parts, needs, problems);
}

// Adds problems with keys of the server, of participation and of the downlink.
template <class T>
void check_server(const CheckedParts<T>& parts, const ExchangeChannel<T>& down, Problems& problems) {
  if (parts.scenario.participation.absent != AbsentState::keep && parts.method.plan.error_slot.empty())
    problems.push_back({"participation.absent", "feedback '" + parts.scenario.feedback_up.kind +
                                                    "' has no error memory that could change while a client is absent; use \"keep\""});
  if (parts.scenario.server.average == Average::normalised && !parts.method.local->traits().can_normalise) {
    const std::string needs = parts.method.local->optimizer() != nullptr && parts.scenario.local.kind == "sgd"
                                  ? "updates that are sums of gradients with known weights, and those of local_optimizer.kind = \"" +
                                        parts.scenario.local_optimizer.kind + "\" with these options are not: use another average"
                                  : "local steps: local kind \"sgd\", is \"" + parts.scenario.local.kind + "\"";
    problems.push_back({"server.average", "\"normalised\" needs " + needs});
  }
  check_aggregation(parts, problems);
  check_time(parts, problems);
  if (parts.scenario.server.statistics && running_averages_of(parts.problem.layers()).empty())
    problems.push_back({"server.statistics", "the model has no running statistics, which batch_norm layers have; drop the key"});
  const ParameterKinds kinds = kinds_of(layers_of_run(parts.scenario, parts.problem.layers()));
  if (kinds.keeps_weights() && !parts.method.local->traits().computes_anywhere)
    problems.push_back({"model.keep", "needs clients that compute at models of their own: local kind \"sgd\" or \"gradient\", is \"" +
                                          parts.scenario.local.kind + "\""});
  if (down.num_phases() > 1)
    problems.push_back({"compressor.down.kind", "'" + parts.scenario.down.part.kind + "' works in phases; the downlink has one"});
  if (!down.client_slot.empty())
    problems.push_back(
        {"compressor.down.kind", "'" + parts.scenario.down.part.kind + "' remembers the clients it compresses for; the server is none"});
}

}  // namespace

void check_followed_steps(const Domain& domain, const std::string& section, std::optional<Unit> unit, Problems& problems) {
  const std::string input = !unit                     ? "the server's message"
                            : *unit == Unit::step     ? "one gradient times one step size"
                            : *unit == Unit::gradient ? "a gradient"
                                                      : "a client's update";
  const std::string here = "; here the input is " + input + ": ";
  const std::string plain = "leave the rule out, and give the number in units of this input";
  if (domain.follows_step && unit != Unit::step)
    problems.push_back({section,
                        "rule = \"lambda\", and a number that names gamma, follow the step size and need unit = \"step\", one gradient "
                        "times one step size" +
                            here + plain + (unit == Unit::update ? ", or take rule = \"gamma\" or \"gamma_steps\"" : "")});
  if ((domain.follows_local_step || domain.follows_local_total) && unit != Unit::update)
    problems.push_back({section, "rule = \"gamma\" and \"gamma_steps\" follow the step size of local steps and need unit = \"update\"" +
                                     here + (unit == Unit::step ? "take rule = \"lambda\"" : plain)});
}

template <class T>
void check_parts(const CheckedParts<T>& parts) {
  Problems problems;
  check_measures(parts, problems);
  check_local_update(parts, problems);
  check_local_optimizer(parts, problems);
  const ExchangeChannel<T> down = about_key("compressor.down.kind", [&] {
    return make_channel<T>(parts.scenario, parts.problem.layers(), "down", parts.scenario.down, 0, 1, Device::cpu);
  });
  const FeedbackNeeds needs = parts.method.feedback->needs();
  check_needs(needs, parts.method.plan, combination_of(parts, needs, down, problems), problems);
  check_postprocessor(parts, needs, problems);
  check_server(parts, down, problems);
  check_asynchronous(parts, needs, problems);
  check_follows_steps(parts, down, problems);
  for (const auto& [channel, _] : parts.scenario.up) {
    const bool known = channel.empty() || std::any_of(parts.method.exchange.channels.begin(), parts.method.exchange.channels.end(),
                                                      [&name = channel](const auto& c) { return c.name == name; });
    if (!known) problems.push_back({"compressor.up." + channel, unknown_channel(parts, channel)});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

template void check_parts(const CheckedParts<float>&);
template void check_parts(const CheckedParts<double>&);

}  // namespace fl
