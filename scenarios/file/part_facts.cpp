#include "scenarios/file/part_facts.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "clients/learning/local_update.hpp"
#include "compressors/codec/codec.hpp"
#include "compressors/compressor.hpp"
#include "compressors/conversation.hpp"
#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/meanings.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/random/random.hpp"
#include "scenarios/file/axis_table.hpp"
#include "scenarios/file/measure_set.hpp"

namespace fl {
namespace {

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void add_once(std::vector<std::string>& words, const std::string& word) {
  if (std::ranges::find(words, word) == words.end()) words.push_back(word);
}

template <class Interface>
std::unique_ptr<Interface> make_default(const std::string& role, const std::string& name, Precision precision = Precision::float64) {
  return make_part<Interface>(role, name, Registry::instance().default_options(role, name), Device::cpu, precision);
}

// answer(operator, scope) for 40 x 25 parameters as a vector or, where it asks for a matrix, as one, of 10 clients; "" where an option has
// to be given.
template <class T, class Answer>
std::string ask_compressor(const std::string& name, const Answer& answer) {
  LayerTable table;
  table.layers.push_back({"weight", 0, 40, 25});
  for (const ScopeKind kind : {ScopeKind::model, ScopeKind::tensor}) {
    try {
      const auto part = make_default<Compressor<T>>("compressor", name, kPrecisionOf<T>);
      Scope whole = make_scope(table, kind, 0, {});
      whole.clients = 10;
      const Scope scope = part->adapt(std::move(whole));
      part->check(scope);
      return answer(*part, scope);
    } catch (const Error&) {  // an option that has to be given, or a matrix that is needed
    }
  }
  return "";
}

// Positions and values of a message, in words.
template <class T>
std::string form_of(const Payload<T>& message) {
  std::string text;
  if (message.positions == Positions::factors) text = "factors, ";
  if (message.positions == Positions::list && !message.has_known_positions()) text = "positions and ";
  if (message.values == WireValue::levels)
    text += "levels of " + std::to_string(message.level_format.bits) + (message.level_format.bits == 1 ? " bit" : " bits");
  else
    text += "raw values";
  return message.rest == nullptr ? text : text + " and " + form_of(*message.rest);
}

// The messages of one client that sends 1,000 normal numbers, phase after phase.
std::string messages_of(Compressor<float>& op, const Scope& scope) {
  std::vector<float> x(scope.P), before(op.client_state_size(scope)), after(before.size());
  RandomSequence random(1, Purpose::synthetic_data);
  for (float& v : x) v = static_cast<float>(random.normal());
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::uint32_t client = 0;
  Senders<float> sender{.clients = {&client, 1},
                        .remembered = rows_view<const float>(before.data(), 1, before.size()),
                        .remember = rows_view(after.data(), 1, after.size())};
  sender.input.add(1.0f, rows_view<const float>(x.data(), 1, x.size()));
  Conversation<float> conversation(op, scope, 1);
  conversation.open(1);
  const MessageLevels known = conversation.known_levels();
  std::string text;
  (void)conversation.hold(exec, sender, 1, [&text, &known](const Payload<float>& message, const Scope& vector) {
    const codec::Channel<float> channel{&message.on_wire(), &vector, {}, known};
    const std::uint64_t bits = codec::encoded_bits<float>({&channel, 1});
    text += (text.empty() ? "" : ", then ") + form_of(message.on_wire()) + ", " + std::to_string(bits) + " bits";
  });
  return text;
}

std::string text_of(const Contract& contract) {
  std::string text;
  const auto claim = [&text](const std::string& what, bool in_expectation) {
    text += (text.empty() ? "" : "; ") + what + (in_expectation ? " in expectation" : "");
  };
  const auto is_mean = [](Contract::Holds holds) { return holds == Contract::Holds::in_expectation; };
  if (contract.kappa) claim("absolute, kappa = " + short_number(*contract.kappa), is_mean(contract.kappa_holds));
  if (contract.delta) claim("contraction, delta = " + short_number(*contract.delta), is_mean(contract.delta_holds));
  if (contract.omega) claim("unbiased, omega = " + short_number(*contract.omega), false);
  if (text.empty()) text = "none";
  if (contract.linear) text += "; linear";
  if (!contract.no_memory.empty()) text += "; no feedback keeps its error";
  const std::string domain = to_string(contract.domain);
  return domain.empty() ? text : text + "; " + domain;
}

// ---- feedbacks: what their needs say -----------------------------------------------------------------------------------------------

// One operator of each kind of promise.
const std::vector<std::pair<std::string, Contract>>& promises() {
  static const std::vector<std::pair<std::string, Contract>> all = [] {
    Contract contraction, absolute, unbiased;
    contraction.delta = 0.5;
    absolute.kappa = 1;
    unbiased.omega = 9;
    return std::vector<std::pair<std::string, Contract>>{
        {"contraction", contraction}, {"absolute", absolute}, {"unbiased", unbiased}, {"without a promise", {}}};
  }();
  return all;
}

std::string operators_text(const OperatorNeed& need) {
  if (!need.kind.empty()) return need.kind;
  std::vector<std::string> words;
  for (const auto& [words_of_promise, contract] : promises())
    if (is_met(need, "", contract)) words.push_back(words_of_promise);
  return joined(words);
}

// The local updates that a feedback can be combined with, and their units and vectors.
struct SuitedWork {
  std::vector<std::string> kinds, units, vectors;  // vectors: of the first of them
};

SuitedWork suited_work_of(const std::string& feedback, const FeedbackNeeds& needs) {
  SuitedWork work;
  for (const std::string& kind : Registry::instance().names("local_update")) {
    const auto update = make_default<LocalUpdate<double>>("local_update", kind);
    const std::vector<std::string> needed = update->needs_feedback();
    if (!needed.empty() && std::ranges::find(needed, feedback) == needed.end()) continue;
    bool is_suited = false;
    for (const Unit unit : update->units()) {
      FeedbackCombination combination;
      combination.local_update = kind;
      combination.unit = unit;
      combination.channels = update->vectors();
      combination.computes_anywhere = update->traits().computes_anywhere;
      combination.subtracts_optimum = update->traits().needs_optimum || needs.subtracts_optimum;
      const bool suits = suits_local_work(needs, combination);
      if (suits) add_once(work.units, to_string(unit));
      is_suited = is_suited || suits;
    }
    if (!is_suited) continue;
    if (work.vectors.empty()) work.vectors = update->vectors();
    const bool subtracts = update->traits().needs_optimum || (needs.subtracts_optimum && kind == "gradient");
    work.kinds.push_back(kind + (subtracts ? " with subtract = \"optimum\"" : ""));
  }
  return work;
}

}  // namespace

std::string promise_of_compressor(const std::string& name) {
  return ask_compressor<double>(name, [](const Compressor<double>& op, const Scope& scope) { return text_of(op.contract(scope)); });
}

std::string message_of_compressor(const std::string& name) { return ask_compressor<float>(name, messages_of); }

std::vector<std::string> needs_of_feedback(const std::string& name) {
  FeedbackNeeds needs;
  FeedbackPlan plan;
  try {
    const auto part = make_default<Feedback<double>>("feedback", name);
    needs = part->needs();
    plan = part->plan();
  } catch (const Error&) {  // an option that has to be given
    return {};
  }
  const SuitedWork work = suited_work_of(name, needs);
  if (work.kinds.empty()) return {};
  std::vector<std::string> lines;
  const std::vector<ChannelSpec> channels = channels_of(plan, work.vectors);
  for (const ChannelSpec& channel : channels)
    lines.push_back("operators" + (channels.size() > 1 ? " of " + channel.name : "") + ": " +
                    operators_text(need_of_channel(needs, channel.name)) + (needs.own_messages ? "" : "; also in phases"));
  lines.push_back("units: " + joined(work.units));
  lines.push_back("local updates: " + joined(work.kinds));
  if (needs.every_client || !needs.all_at_first.empty()) lines.emplace_back("participation: every client in every round");
  if (needs.contracting_downlink) lines.emplace_back("downlink: a compressor");
  if (needs.plain_server) lines.emplace_back("server: sgd without momentum, weight decay and look-ahead");
  return lines;
}

namespace {

// The default of an option, or a value that it may have where it has none.
std::string example_value(const Field& field) {
  const Value value = field.value();
  const auto* text = std::get_if<std::string>(&value.data);
  if (text != nullptr && text->empty()) return "\"file.csv\"";
  return field.is_set() ? to_string(value) : "10";
}

// The options of an example: what is required, and up to two others that have a plain default, those that matter most before.
std::vector<const Field*> example_fields(Schema& schema) {
  constexpr std::size_t kMostOptional = 2;
  static const std::vector<std::string> kFirst = {"learning_rate", "steps", "ratio", "fraction"};
  std::vector<const Field*> required, optional;
  for (const Field& field : schema.fields()) {
    if (field.is_required) required.push_back(&field);
    const Value value = field.value();
    const auto* text = std::get_if<std::string>(&value.data);
    const bool is_plain = !std::holds_alternative<std::monostate>(value.data) && !(text != nullptr && text->empty());
    if (!field.is_required && !field.takes_tables && field.is_set() && is_plain) optional.push_back(&field);
  }
  const auto is_first = [](const Field* field) { return std::ranges::find(kFirst, field->name) != kFirst.end(); };
  std::stable_partition(optional.begin(), optional.end(), is_first);
  optional.resize(std::min(optional.size(), kMostOptional));
  required.insert(required.end(), optional.begin(), optional.end());
  return required;
}

}  // namespace

std::vector<std::string> facts_of_measure(const std::string& name) {
  const MeasureFacts facts = measure_facts(name);
  std::vector<std::string> lines = {"due: " + facts.due, "costs: " + facts.cost};
  for (const MeasureColumn& column : facts.columns)
    lines.push_back("column " + column.name + (column.unit.empty() ? "" : " [" + column.unit + "]") + ": " + column.definition);
  return lines;
}

std::string keys_beside_options(const std::string& role) {
  const std::string table = table_of_role(role);
  std::string keys;
  for (const std::string& key : keys_of_table(table)) keys += (keys.empty() ? "" : ", ") + key;
  return keys.empty() ? "" : keys + " in [" + table + "] (`fedbits list reference` describes them)";
}

std::string example_of_part(const std::string& role, const std::string& name) {
  Options options = Registry::instance().default_options(role, name);
  Schema schema = options.schema();
  std::string settings;
  if (role == "layer") {
    for (const Field& field : schema.fields())
      if (field.is_required) settings += (settings.empty() ? "" : ", ") + field.name + "=" + example_value(field);
    return "model = { kind = \"neural_network\", layers = [\"" + name + (settings.empty() ? "" : "(" + settings + ")") + "\"] }";
  }
  if (role == "measure") {
    if (const StandardMeasure* standard = find_standard_measure(name); standard != nullptr)
      return standard->key.empty() ? "every run has its columns" : "every run has its columns, as " + std::string(standard->key) + " says";
    return "evaluate.measures = [{ kind = \"" + name + "\", every = 10 }]";
  }
  for (const Field* field : example_fields(schema)) settings += ", " + field->name + " = " + example_value(*field);
  return table_of_role(role) + " = { kind = \"" + name + "\"" + settings + " }";
}

bool tells_of_gpu(const std::string& role) {
  return role == "compressor" || role == "feedback" || role == "local_update" || role == "local_optimizer" || role == "layer";
}

std::string on_gpu(const std::string& role, const std::string& name) {
  const std::string stays = "stays on the GPU";
  const auto told = [&stays](const std::string& does) { return does.empty() ? stays : "the host " + does; };
  if (role == "feedback") {
    const std::string does = make_default<Feedback<double>>(role, name)->plan().host_walks;
    return does.empty() ? stays : "partly on the CPU: the host " + does;
  }
  if (role == "local_update") {
    const auto update = make_default<LocalUpdate<double>>(role, name);
    const std::string does = update->host_walks();
    if (update->descent()) return told(does);
    return does.empty() ? "trains on the CPU, and every vector is copied to the GPU" : "trains on the CPU: the host " + does;
  }
  if (role != "compressor" && role != "local_optimizer" && role != "layer") return "";
  const auto has_cuda_half = [&role](const std::string& part) {
    const Registry& registry = Registry::instance();
    return registry.contains(role, part, Device::cuda, Precision::float32) ||
           registry.contains(role, part, Device::cuda, Precision::float64);
  };
  if (!has_cuda_half(role == "layer" ? "dense" : role == "local_optimizer" ? "adamw" : "identity"))
    return "not known: this build has no CUDA";
  if (role == "layer") return has_cuda_half(name) ? stays : "has no CUDA half: networks with it run with --device cpu alone";
  if (role == "local_optimizer") return has_cuda_half(name) ? stays : "has no CUDA half: clients train on the CPU";
  return told(has_cuda_half(name) ? "" : "runs the operator, which has no CUDA half");
}

}  // namespace fl
