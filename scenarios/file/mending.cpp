#include "scenarios/file/mending.hpp"

#include <algorithm>

#include "fl_core/config/key_error.hpp"

namespace fl {
namespace {

constexpr int kMostAttempts = 12;

bool is_within(const std::string& key, const std::string& table) { return key == table || key.starts_with(table + "."); }

// Sets an option of a part to its default.
bool reset_option(Part& part, const std::string& name) {
  Options defaults = default_part("local_update", part.kind).options;
  Schema schema = part.options.schema(), plain = defaults.schema();
  Field *field = schema.find(name), *preset = plain.find(name);
  return field != nullptr && preset != nullptr && !field->assign(preset->value());
}

bool reset_learning_rate(Part& local) {
  Schema schema = local.options.schema();
  Field* field = schema.find("learning_rate");
  return field != nullptr && !field->assign(Value{0.1});
}

bool mend_data(Scenario& s, const std::string& key) {
  if (key == "data.test") {
    s.data.test = "none";
    s.stop.accuracy.reset();
  } else if (key == "data.test_fraction") {
    s.data.test_fraction = 0;
  } else if (is_within(key, "data.augment")) {
    s.data.formats.images.augment = {};
  } else if (key == "data.features") {
    s.data.features = 0;
  } else if (key == "data.storage") {
    s.data.storage = Storage::automatic;
  } else if (key == "data.sequence" || key == "data.stride" || key == "data.min_text" || key == "data.label_positions") {
    s.data.formats.text = {};
  } else {
    return false;
  }
  return true;
}

bool mend_key(Scenario& s, const std::string& key) {
  if (is_within(key, "data")) return mend_data(s, key);
  if (is_within(key, "partition")) {
    s.partition = {default_part("partitioner", "contiguous"), 2};
  } else if (is_within(key, "participation") && key != "participation.absent") {
    s.participation.part = default_part("participation", "full");
  } else if (is_within(key, "start")) {
    s.start = {};
  } else if (key == "evaluate.optimum" || key == "evaluate.average") {
    s.evaluate.optimum = {};
    s.evaluate.average = false;
    s.stop.f_gap.reset();
  } else if (key == "evaluate.clients_every") {
    s.evaluate.clients_every = 0;
  } else if (key == "evaluate.ranking_every") {
    s.evaluate.ranking_every = 0;
  } else if (is_within(key, "stop")) {
    s.stop = {};
  } else if (key == "model.l2") {
    s.model.l2 = 1.0;  // an optimum is found at once
  } else if (key == "model.nonconvex") {
    s.model.nonconvex = 0.0;
  } else if (key == "local.learning_rate") {
    return reset_learning_rate(s.local);
  } else if (is_within(key, "local_optimizer") && key != "local_optimizer.kind") {
    s.local_optimizer = default_part("local_optimizer", "sgd");
  } else if (is_within(key, "local") && key != "local.kind") {
    return reset_option(s.local, key.substr(std::string("local.").size()));
  } else {
    return false;
  }
  return true;
}

// A scenario in which something that cannot be mended has another in its place, and the keys whose problems do not come from that.
struct StandIn {
  Scenario scenario;
  std::vector<std::string> keys;
};

const std::vector<std::string> kMethodKeys = {
    "feedback",    "postprocessor.kind", "aggregation.kind",     "delivery.kind",        "server.average",
    "server.kind", "local.kind",         "local_optimizer.kind", "participation.absent", "compressor.up.unit"};

// Methods that go together, in the place of methods that do not.
StandIn with_plain_method(Scenario s) {
  s.feedback_up = default_part("feedback", "none");
  s.up.clear();
  s.up.try_emplace("");
  s.down = {};
  s.server = {};
  s.up.at("").part = s.down.part = default_part("compressor", "identity");
  s.server.part = default_part("server_optimizer", "sgd");
  s.postprocessor = default_part("postprocessor", "none");
  s.aggregation = default_part("aggregation", "mean");
  s.delivery = default_part("delivery", "all");
  s.network = s.has_clock() ? default_part("network", "preset") : default_part("network", "none");  // measures may need a clock
  s.devices = default_part("devices", "none");
  s.costs = {};
  s.availability = default_part("availability", "always");
  s.asynchronous = default_part("asynchronous", "none");
  s.participation.absent = AbsentState::keep;
  s.local = default_part("local_update", "sgd");
  s.local_optimizer = default_part("local_optimizer", "sgd");
  return {std::move(s), {"start", "evaluate", "stop", "partition", "participation.path"}};
}

// No optimum is computed unless the method needs it, and then of a function that is strongly convex: trying costs little.
Scenario with_plain_problem(Scenario s) {
  s.model.l2 = 1.0;
  s.model.nonconvex = 0.0;
  s.start = {};
  s.evaluate = {};
  s.evaluate.optimum.is_used = false;
  s.stop.f_gap.reset();
  static_cast<void>(reset_learning_rate(s.local));
  return s;
}

// A model that reads the data, if one of these does.
StandIn with_model(const Scenario& scenario, const std::string& kind) {
  Scenario s = with_plain_problem(scenario);
  s.model.part = default_part("model", kind);
  s.evaluate.clients_every = scenario.evaluate.clients_every;
  std::vector<std::string> keys = kMethodKeys;
  keys.insert(keys.end(), {"partition", "participation", "stop.accuracy", "evaluate.clients_every"});
  return {std::move(s), keys};
}

// Data that need no file, and a model that reads them.
StandIn with_data(const Scenario& scenario) {
  Scenario s = with_plain_problem(scenario);
  s.data = {};
  s.data.synthetic = default_part("data", "synthetic");
  s.partition = {default_part("partitioner", "contiguous"), 2};
  s.participation.part = default_part("participation", scenario.participation.part.kind == "full" ? "full" : "uniform");
  s.model.part = default_part("model", "logistic_regression");
  s.stop = {};
  return {std::move(s), kMethodKeys};
}

bool names_any(const Problems& problems, const std::string& table) {
  return std::ranges::any_of(problems, [&](const Problem& problem) { return is_within(problem.where, table); });
}

std::vector<StandIn> stand_ins(const Scenario& scenario, const Problems& problems) {
  if (names_any(problems, "data")) return {with_data(scenario)};
  if (!names_any(problems, "model")) return {with_plain_method(scenario)};
  std::vector<StandIn> all;
  for (const char* kind : {"logistic_regression", "linear_regression", "char_lstm", "ncf"}) all.push_back(with_model(scenario, kind));
  return all;
}

class Search {
 public:
  explicit Search(const std::function<void(const Scenario&)>& attempt) : attempt_(attempt) {}

  // Tries the scenario, mends and tries again. Keeps problems whose keys lie in one of the tables; no tables: all. Returns the problems of
  // the last attempt, none where it succeeded.
  Problems run(Scenario& scenario, const std::vector<std::string>& tables) { return go_on(scenario, problems_of(scenario), tables); }
  // The same when the problems of the first attempt are known.
  Problems go_on(Scenario& scenario, Problems problems, const std::vector<std::string>& tables) {
    for (int tries = 0; tries < kMostAttempts; ++tries, problems = problems_of(scenario)) {
      for (const Problem& problem : problems)
        if (tables.empty() || std::ranges::any_of(tables, [&](const std::string& table) { return is_within(problem.where, table); }))
          keep(problem);
      if (problems.empty() || !mend(scenario, problems)) return problems;
    }
    return {};
  }
  [[nodiscard]] const Problems& found() const { return found_; }

 private:
  Problems problems_of(const Scenario& scenario) {
    try {
      attempt_(scenario);
    } catch (const ConfigError& error) {
      return error.problems();
    } catch (const DataError& error) {
      return {{key_of_data(scenario.data), error.what()}};
    } catch (const Error&) {  // of a mended scenario: the first attempt throws nothing else
    }
    return {};
  }
  void keep(const Problem& problem) {
    const auto same = [&](const Problem& known) { return known.where == problem.where && known.message == problem.message; };
    if (std::ranges::none_of(found_, same)) found_.push_back(problem);
  }

  const std::function<void(const Scenario&)>& attempt_;
  Problems found_;
};

}  // namespace

bool mend(Scenario& scenario, const Problems& problems) {
  return std::ranges::all_of(problems, [&](const Problem& problem) { return mend_key(scenario, problem.where); });
}

Problems all_problems(const Scenario& scenario, const Problems& first, const std::function<void(const Scenario&)>& attempt) {
  Search search(attempt);
  Scenario mended = scenario;
  const Problems last = search.go_on(mended, first, {});
  if (last.empty()) return search.found();
  for (StandIn& stand_in : stand_ins(mended, last)) {
    const Problems rest = search.run(stand_in.scenario, stand_in.keys);
    if (!names_any(rest, "model")) break;  // this model reads the data
  }
  return search.found();
}

}  // namespace fl
