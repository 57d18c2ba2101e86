// Parts for tests of the configuration layer: the names that the examples use, if no real part has them, and some with odd options.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/registry.hpp"
#include "scenarios/file/scenario.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl::test {

struct TopK {
  std::int64_t k = 0;
  double ratio = 0.01;
};
inline void describe(Schema& s, TopK& o) {
  s.field("k", o.k, "entries kept; 0 takes the ratio").at_least(0);
  s.field("ratio", o.ratio, "fraction of entries kept").above(0).at_most(1);
}

struct Threshold {
  Expression threshold = 0.01;
};
inline void describe(Schema& s, Threshold& o) { s.field("threshold", o.threshold, "smallest magnitude that is sent").above(0); }

struct Gradient {
  Expression learning_rate = Expression("1/L");
  std::int64_t batch = 0;
};
inline void describe(Schema& s, Gradient& o) {
  s.field("learning_rate", o.learning_rate, "gamma; a rule may use L, l2").above(0);
  s.field("batch", o.batch, "rows per step; 0 = all").at_least(0);
}

struct Steps {
  Expression learning_rate = 0.1;
  std::int64_t steps = 1, batch = 32;
};
inline void describe(Schema& s, Steps& o) {
  s.field("learning_rate", o.learning_rate, "gamma").above(0);
  s.field("steps", o.steps, "local steps").at_least(1);
  s.field("batch", o.batch, "rows per step").at_least(1);
}

struct Mlp {
  std::vector<std::int64_t> hidden = {200};
};
inline void describe(Schema& s, Mlp& o) { s.field("hidden", o.hidden, "widths").at_least(1); }

struct Logistic {
  bool bias = true;
};
inline void describe(Schema& s, Logistic& o) { s.field("bias", o.bias, "whether there is a bias"); }

struct Dirichlet {
  enum class Concentration { per_class, total };
  double alpha = 1;
  Concentration concentration = Concentration::per_class;
};
inline void describe(Schema& s, Dirichlet& o) {
  s.field("alpha", o.alpha, "concentration").above(0);
  s.choice("concentration", o.concentration,
           {{Dirichlet::Concentration::per_class, "per_class"}, {Dirichlet::Concentration::total, "total"}}, "what alpha is");
}

struct Uniform {
  double fraction = 0.1;
};
inline void describe(Schema& s, Uniform& o) { s.field("fraction", o.fraction, "of the clients").above(0).at_most(1); }

struct ServerSgd {
  double learning_rate = 1;
};
inline void describe(Schema& s, ServerSgd& o) { s.field("learning_rate", o.learning_rate, "of the server").above(0); }

// Reuses the name of a key that only files have.
struct Generated {
  double low = 0;
  std::int64_t features = 7;
};
inline void describe(Schema& s, Generated& o) {
  s.field("low", o.low, "lower end").required();
  s.field("features", o.features, "number of features").at_least(1);
}

// Required keys, a condition between keys, every type of field.
struct Odd {
  double low = 0, high = 1;
  std::string word = "a \"quoted\" \\ word\n";
  std::vector<double> weights = {0.5, 1};
  std::vector<std::string> tags;
  bool flag = false;
  std::int64_t count = 3;
};
inline void describe(Schema& s, Odd& o) {
  s.field("low", o.low, "lower end").required();
  s.field("high", o.high, "upper end");
  s.field("word", o.word, "any | text");
  s.field("weights", o.weights, "positive numbers").above(0).unit("kg");
  s.field("tags", o.tags, "names");
  s.field("flag", o.flag, "on or off");
  s.field("count", o.count, "how many").at_least(1).at_most(9);
}
inline void validate(const Odd& o, Problems& problems) {
  if (o.low > o.high) problems.push_back({"low", "must be at most high"});
}

// Registers at run time, so that real parts of the same name, registered before, stay.
inline void register_test_parts() {
  auto& r = Registry::instance();
  r.describe({"compressor", "identity", "sends everything", ""}, Options::of<NoOptions>());
  r.describe({"compressor", "top_k", "the largest entries", "someone, 2020"}, Options::of<TopK>());
  r.describe({"compressor", "hard_threshold", "the large entries", ""}, Options::of<Threshold>());
  r.describe({"compressor", "test_odd", "for tests", "nobody"}, Options::of<Odd>());
  r.describe({"feedback", "none", "no memory", ""}, Options::of<NoOptions>());
  r.describe({"feedback", "ef14", "keeps what was not sent", ""}, Options::of<NoOptions>());
  r.describe({"local_update", "gradient", "one gradient", ""}, Options::of<Gradient>());
  r.describe({"local_update", "sgd", "local steps", ""}, Options::of<Steps>());
  r.describe({"participation", "full", "everyone", ""}, Options::of<NoOptions>());
  r.describe({"participation", "uniform", "a sample", ""}, Options::of<Uniform>());
  r.describe({"postprocessor", "none", "nothing", ""}, Options::of<NoOptions>());
  r.describe({"local_optimizer", "sgd", "plain steps", ""}, Options::of<NoOptions>());
  r.describe({"aggregation", "mean", "the sum", ""}, Options::of<NoOptions>());
  r.describe({"delivery", "all", "everyone's", ""}, Options::of<NoOptions>());
  r.describe({"devices", "none", "no time", ""}, Options::of<NoOptions>());
  r.describe({"network", "none", "no time", ""}, Options::of<NoOptions>());
  r.describe({"availability", "always", "everyone", ""}, Options::of<NoOptions>());
  r.describe({"server_optimizer", "sgd", "one step", ""}, Options::of<ServerSgd>());
  r.describe({"partitioner", "contiguous", "in file order", ""}, Options::of<NoOptions>());
  r.describe({"partitioner", "dirichlet_client", "skewed", ""}, Options::of<Dirichlet>());
  r.describe({"model", "logistic_regression", "logistic loss", ""}, Options::of<Logistic>());
  r.describe({"model", "mlp", "layers", ""}, Options::of<Mlp>());
  r.describe({"data", "test_numbers", "synthetic", ""}, Options::of<Generated>());
}

// The value of one option of a part, whatever its options struct; "" when it has no such option.
inline std::string option(const Part& part, const std::string& name) {
  Options options = part.options;
  Schema schema = options.schema();
  const Field* field = schema.find(name);
  return field == nullptr ? "" : to_string(field->value());
}

// The problems of a scenario text as "where: message" lines; empty when it is right.
inline std::vector<std::string> problems_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  std::vector<std::string> lines;
  try {
    static_cast<void>(parse_cells(text, "f.toml", settings));
  } catch (const ConfigError& error) {
    for (const Problem& p : error.problems()) lines.push_back(p.where + ": " + p.message);
  }
  return lines;
}

inline testing::AssertionResult starts_with(const std::string& text, const std::string& start) {
  if (text.compare(0, start.size(), start) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not start with \"" << start << "\"";
}
inline testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not contain \"" << part << "\"";
}

class ScenarioTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { register_test_parts(); }
  // The shortest scenario, to which tests add.
  static constexpr const char* kShortest = "name = \"short\"\nrounds = 5\ndata.name = \"a9a\"\nmodel.kind = \"logistic_regression\"\n";
};

}  // namespace fl::test
