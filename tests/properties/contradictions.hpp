// Scenarios whose keys are valid individually but contradict each other, the data or the machine; and texts that try to exhaust a reader.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/properties/broken_scenarios.hpp"
#include "tests/properties/contradiction_list.hpp"
#include "tests/properties/feedback_contradictions.hpp"

namespace fl::test {

// Returns small and quick tables, like kBase of every_key_contexts.hpp.
inline Tables base_tables() {
  return {{"", "name = \"broken\"\nrounds = 6\nprecision = \"float64\""},
          {"data", "name = \"mushrooms\"\nrows = 150\ntest_fraction = 0.2"},
          {"partition", "kind = \"shuffled\"\nclients = 4"},
          {"model", "kind = \"logistic_regression\"\nl2 = 0.01"},
          {"local", "kind = \"gradient\"\nlearning_rate = 0.5"},
          {"evaluate", "every = 1"}};
}

// Returns the files that these scenarios name, in addition to those of every_key_contexts.hpp.
inline std::map<std::string, std::string> contradiction_files() {
  std::string columns;
  for (int round = 0; round < 20; ++round) columns += "0 1 2 3\n";
  return {{"three.txt", "1\n2\n3\n"},
          {"columns.csv", columns},
          {"broken.safetensors", "\xFF\xFF\xFF\xFF"},
          {"broken.npy", "\x93NUMPY"},
          {"plan.toml", "contrasts = [\"small:large\"]\n"},
          {"between.toml", "contrasts = [\"small:large\"]\nbetween = [\"feedback.up=x:y\"]\n"},
          {"empty_plan.toml", "window = 0.2\n"}};
}

inline std::string repeated(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

// Returns texts that nest or repeat until a reader without limits fails.
inline std::vector<BrokenCase> endless_texts() {
  std::vector<BrokenCase> cases;
  const auto add = [&cases](const std::string& name, const std::string& key, const Tables& changes) {
    Tables tables = base_tables();
    for (const auto& [section, body] : changes) tables[section] = body;
    cases.push_back({name, text_of(tables), {key}});
  };
  const std::string sgd = "kind = \"sgd\"\nbatch = 4\nlearning_rate = 0.1";
  const std::string head = "name = \"x\"\nrounds = 6\n";
  std::string candidates;
  for (int i = 1; i < 120; ++i) candidates += (i > 1 ? ", " : "") + std::to_string(i / 1000.0);
  add("tuning with too many candidates", "sweep.tune",
      {{"", "name = \"x\"\nrounds = 60\nprecision = \"float64\""},
       {"sweep.tune", "keys = [{ key = \"local.learning_rate\", values = [" + candidates + "] }, { key = \"model.l2\", values = [" +
                          candidates + "] }]"}});
  const auto layers = [&](const std::string& text) { return "kind = \"neural_network\"\nlayers = ['" + text + "', 'dense(classes)']"; };
  add("a dotted key of 15000 names", "a.a", {{"", head + repeated("a.", 15000) + "a = 1"}});
  add("a table of 15000 names", "a.a", {{repeated("a.", 15000) + "a", "x = 1"}});
  add("tables in tables in dotted keys", "a.a", {{"", head + repeated("a.a.a.a.a.a = { ", 200) + "x = 1" + repeated(" }", 200)}});
  add("100000 brackets", "x", {{"", head + "x = " + repeated("[", 100000)}});
  add("200 lists in each other", "x", {{"", head + "x = " + repeated("[", 200) + repeated("]", 200)}});
  add("200 tables in each other", "x", {{"", head + "x = " + repeated("{ a = ", 200) + "1" + repeated(" }", 200)}});
  add("an axis of a key of 15000 names", "sweep.axis.key", {{"[sweep.axis]", "key = \"" + repeated("a.", 15000) + "a\"\nvalues = [1]"}});
  add("tuning of a key of 15000 names", "sweep.tune", {{"sweep.tune", "key = \"" + repeated("a.", 15000) + "a\"\nvalues = [1]"}});
  add("an axis of 100001 values", "sweep.axis.values", {{"[sweep.axis]", "key = \"rounds\"\nvalues = [1" + repeated(", 1", 100000) + "]"}});
  add("100000 keys that nobody knows", "unknown key", {{"", [&] {
                                                          std::string text = head;
                                                          for (int i = 0; i < 100000; ++i) text += "key" + std::to_string(i) + " = 1\n";
                                                          return text;
                                                        }()}});
  for (const std::size_t depth : {9u, 30u, 60u}) {
    add(std::to_string(depth) + " operators in each other", "compressor.up.biased",
        {{"compressor.up",
          "kind = \"induced\"\nbiased = " + repeated("{ kind = \"induced\", biased = ", depth) + "\"top_k\"" + repeated(" }", depth)}});
  }
  add("17 residual layers in each other", "model.layers",
      {{"model", layers(repeated("residual([", 17) + "relu" + repeated("])", 17))}, {"local", sgd}});
  add("4000 residual layers in each other", "model.layers",
      {{"model", layers(repeated("residual([", 4000) + "relu" + repeated("])", 4000))}, {"local", sgd}});
  add("100000 brackets in a layer", "model.layers", {{"model", layers("residual(" + repeated("[", 100000))}, {"local", sgd}});
  add("a layer of a megabyte", "model.layers", {{"model", layers("dense(" + repeated("9", 1000000) + ")")}, {"local", sgd}});
  add("101 parentheses", "local.learning_rate",
      {{"local", "kind = \"gradient\"\nlearning_rate = \"" + repeated("(", 101) + "1" + repeated(")", 101) + "\""}});
  add("a rule of 100000 parentheses", "local.learning_rate",
      {{"local", "kind = \"gradient\"\nlearning_rate = \"" + repeated("(", 100000) + "\""}});
  add("a rule of 100000 signs", "local.learning_rate",
      {{"local", "kind = \"gradient\"\nlearning_rate = \"" + repeated("-", 100000) + "1\""}});
  add("a rule of 100000 names", "local.learning_rate",
      {{"local", "kind = \"gradient\"\nlearning_rate = \"" + repeated("n+", 100000) + "n\""}});
  return cases;
}

inline std::vector<BrokenCase> contradictions() {
  std::vector<BrokenCase> cases;
  for (const Contradiction& one : kContradictions) {
    Tables tables = base_tables();
    for (const auto& [section, body] : one.tables) tables[section] = std::regex_replace(body, std::regex("; "), "\n");
    cases.push_back({one.name, text_of(tables), one.keys, one.near, one.settings});
  }
  for (BrokenCase& one : feedback_contradictions(base_tables())) cases.push_back(std::move(one));
  for (BrokenCase& one : endless_texts()) cases.push_back(std::move(one));
  return cases;
}

}  // namespace fl::test
