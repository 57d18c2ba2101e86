#include "scenarios/file/early_checks.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "clients/learning/model.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"

namespace fl {
namespace {

// Returns the value of a part's option; nothing if it has none of that name.
std::optional<Value> option_of(const Part& part, const std::string& name) {
  Options options = part.options;
  if (options.empty()) return std::nullopt;
  Schema schema = options.schema();
  const Field* field = schema.find(name);
  return field == nullptr ? std::nullopt : std::optional(field->value());
}

// Returns the text of a part's option, "" if it has none or another value.
std::string text_option(const Part& part, const std::string& name) {
  const std::optional<Value> value = option_of(part, name);
  const auto* text = value ? std::get_if<std::string>(&value->data) : nullptr;
  return text == nullptr ? "" : *text;
}

template <class T>
bool has_smoothness(const Part& part) {
  return make_part<Model<T>>("model", part.kind, part.options, Device::cpu, kPrecisionOf<T>)->second_order() != nullptr;
}

// Returns true as well for models that cannot be made: that is another problem.
bool may_have_smoothness(const Scenario& scenario) {
  const Part& part = scenario.model.part;
  try {
    return scenario.precision == Precision::float32 ? has_smoothness<float>(part) : has_smoothness<double>(part);
  } catch (const Error&) {
    return true;
  }
}

// The rules of a scenario, by key.
std::vector<std::pair<std::string, Expression>> rules_of(const Scenario& scenario) {
  std::vector<std::pair<std::string, Expression>> rules = {{"model.l2", scenario.model.l2}, {"model.nonconvex", scenario.model.nonconvex}};
  if (const std::string text = text_option(scenario.local, "learning_rate"); !text.empty())
    rules.emplace_back("local.learning_rate", Expression(text));
  std::erase_if(rules, [](const auto& rule) { return !needs_smoothness(rule.second); });
  return rules;
}

// Returns true if the scenario has this key and takes rules over the constants of a smooth model there.
bool takes_rules(const Scenario& scenario, const std::string& key) {
  if (key == "model.l2" || key == "model.nonconvex") return true;
  return key == "local.learning_rate" && option_of(scenario.local, "learning_rate").has_value();
}

// Returns the rule of a value that names a constant of a smooth model; nothing for other values, and for rules that cannot be read, which
// are reported when the value is tried.
std::optional<Expression> rule_on_smoothness(const Value& value) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return std::nullopt;
  try {
    const Expression rule(*text);
    return needs_smoothness(rule) ? std::optional(rule) : std::nullopt;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// Files that a scenario names, by key.
std::vector<std::pair<std::string, std::string>> files_of(const Scenario& scenario) {
  std::vector<std::pair<std::string, std::string>> files = {{"start.path", scenario.start.path},
                                                            {"evaluate.optimum", scenario.evaluate.optimum.path},
                                                            {"local.sample_file", text_option(scenario.local, "sample_file")}};
  if (scenario.partition.part.kind == "file") files.emplace_back("partition.path", text_option(scenario.partition.part, "path"));
  if (scenario.participation.part.kind == "trace")
    files.emplace_back("participation.path", text_option(scenario.participation.part, "path"));
  if (scenario.devices.kind == "csv") files.emplace_back("devices.path", text_option(scenario.devices, "path"));
  if (scenario.network.kind == "trace") files.emplace_back("network.path", text_option(scenario.network, "path"));
  if (scenario.availability.kind == "trace") files.emplace_back("availability.path", text_option(scenario.availability, "path"));
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  return files;
}

}  // namespace

bool needs_smoothness(const Expression& rule) {
  if (rule.is_number()) return false;
  return std::ranges::any_of(names_of(rule), [](const std::string& name) {
    return name == "L" || name == "L_max" || name == "mu" || name == "theory" || name == "tight";
  });
}

std::string needs_smoothness_text(const Expression& rule, const std::string& key, const std::string& model) {
  const std::string option = key.substr(key.rfind('.') + 1);
  return "\"" + rule.text() + "\" needs the smoothness constant L, which is not known for this model, model.kind = \"" + model +
         "\"; write a number, such as " + option + " = " + (option == "learning_rate" ? "0.1" : "0.001");
}

EarlyChecks::EarlyChecks(InputSearch search, const std::vector<TuneKey>& tuned) : search_(std::move(search)) {
  for (const TuneKey& one : tuned)
    for (const Value& value : one.values)
      if (const auto rule = rule_on_smoothness(value)) tuned_.push_back({one.key, *rule, one.place});
}

void EarlyChecks::check(const Scenario& scenario, const KeyPlaces& places, ProblemList& problems) {
  check_rules(scenario, places, problems);
  if (search_.catalog != nullptr) check_inputs(scenario, places, problems);
}

void EarlyChecks::check_rules(const Scenario& scenario, const KeyPlaces& places, ProblemList& problems) {
  const std::string& kind = scenario.model.part.kind;
  if (!Registry::instance().contains("model", kind)) return;  // that is reported
  const auto rules = rules_of(scenario);
  if ((rules.empty() && tuned_.empty()) || good_.contains("model " + kind)) return;
  if (may_have_smoothness(scenario)) {
    good_.insert("model " + kind);
    return;
  }
  for (const auto& [key, rule] : rules) problems.add(places.find(key), key + ": " + needs_smoothness_text(rule, key, kind));
  for (const TunedRule& tuned : tuned_)
    if (takes_rules(scenario, tuned.key))
      problems.add(tuned.place, "sweep.tune.values: " + tuned.key + ": " + needs_smoothness_text(tuned.rule, tuned.key, kind));
}

void EarlyChecks::check_inputs(const Scenario& scenario, const KeyPlaces& places, ProblemList& problems) {
  const auto look = [&](const std::string& key, const std::string& name, const std::function<void()>& find) {
    if (name.empty() || good_.contains(key + " " + name)) return;
    try {
      find();
      good_.insert(key + " " + name);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) problems.add(places.find(key), key + ": " + problem.message);
    }
  };
  const DataCatalog& catalog = *search_.catalog;
  const DataOptions& data = scenario.data;
  if (data.synthetic.kind.empty()) {
    look("data.name", data.name, [&] { static_cast<void>(catalog.find(data.name)); });
    look("data.path", data.path, [&] { static_cast<void>(catalog.find_path(data.path, search_.folder)); });
    if (data.test != "auto" && data.test != "none" && data.test_fraction == 0)
      look("data.test", data.test, [&] { static_cast<void>(catalog.find_path(data.test, search_.folder)); });
  }
  for (const auto& [key, path] : files_of(scenario))
    look(key, path, [&, &name = key, &file = path] { static_cast<void>(catalog.find_input(name, file, search_.folder)); });
}

}  // namespace fl
