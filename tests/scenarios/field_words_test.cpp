// Tests that terms of the field lead to the names of keys, parts, values and data sets, and that every target of the table exists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/meanings.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/file/part_facts.hpp"
#include "scenarios/file/sections.hpp"
#include "tests/scenarios/test_parts.hpp"

namespace fl::test {
namespace {

using testing::HasSubstr;

// A scenario with one part of each role, so that sections can be asked for their keys.
struct WordSchema {
  // Returns the field of a key, also a key of any part of the section's role; nothing if there is no such key.
  static std::optional<Field> field(const std::string& table, const std::string& key) {
    Scenario scenario;
    for (Section& section : sections_of(scenario)) {
      if (section.path != table) continue;
      for (Field& field : section.keys.fields())
        if (field.name == key) return field;
      if (section.role.empty()) continue;
      if (key == "kind")
        return Field(
            "kind", "string", "", [](const Value&) { return std::nullopt; }, [] { return Value{}; });
      for (const std::string& part : Registry::instance().names(section.role)) {
        Options options = Registry::instance().default_options(section.role, part);
        Schema schema = options.schema();
        if (Field* found = schema.find(key)) return *found;
      }
    }
    return std::nullopt;
  }
  static bool has_table(const std::string& table) {
    if (table == "sweep") return true;
    Scenario scenario;
    const auto sections = sections_of(scenario);
    return std::ranges::any_of(sections, [&](const Section& section) { return section.path == table; });
  }
  static std::string role_of(const std::string& table) {
    Scenario scenario;
    for (const Section& section : sections_of(scenario))
      if (section.path == table) return section.role;
    return "";
  }
};

// Returns what is wrong with a key and the value that it is given; "" if both are there.
std::string fault_of(const std::string& table, const std::string& key, const std::string& value) {
  static const std::vector<std::string> sweep_keys = {"seeds", "axis", "exclude", "tune", "to_bits_of"};
  if (table == "sweep") return std::ranges::find(sweep_keys, key) != sweep_keys.end() ? "" : "[sweep] has no such key";
  if (key == "layer") return Registry::instance().contains("layer", value) ? "" : "no such layer";
  if (table == "data" && key == "augment") return "";
  if (!WordSchema::has_table(table)) return "no such table";
  const std::optional<Field> field = WordSchema::field(table, key);
  if (!field) return "no such key";
  if (value.empty()) return "";
  if (key == "kind") return Registry::instance().contains(WordSchema::role_of(table), value) ? "" : "no such part";
  if (table == "data" && key == "name") return find_data_info(value) != nullptr ? "" : "no such data set";
  if (!field->choices.empty()) return std::ranges::find(field->choices, value) != field->choices.end() ? "" : "no such choice";
  return value.find_first_not_of("0123456789.") == std::string::npos ? "" : "neither a choice nor a number";
}

TEST(FieldWords, EveryTargetIsThere) {
  ASSERT_GT(field_words().size(), 100u);
  for (const FieldWord& line : field_words()) {
    const std::string words = line.words, first = words.substr(0, words.find(','));
    const std::vector<Meaning> meanings = meanings_of(first);
    ASSERT_FALSE(meanings.empty()) << words;
    for (const Meaning& meaning : meanings) {
      const bool is_there =
          meaning.key.empty() ? WordSchema::has_table(meaning.table) : fault_of(meaning.table, meaning.key, meaning.value).empty();
      EXPECT_TRUE(is_there) << line.target;
      for (const std::string& setting : meaning.with) {
        const std::size_t equals = setting.find('='), dot = setting.rfind('.', equals);
        ASSERT_NE(equals, std::string::npos) << setting;
        EXPECT_EQ(fault_of(setting.substr(0, dot), setting.substr(dot + 1, equals - dot - 1), setting.substr(equals + 1)), "") << setting;
      }
    }
  }
}

TEST(FieldWords, EveryRoleHasItsTable) {
  for (const std::string& role : Registry::instance().roles()) {
    const std::string table = table_of_role(role);
    if (!table.empty()) {
      EXPECT_EQ(WordSchema::role_of(table), role);
    }
  }
}

class FieldWordErrors : public ScenarioTest {
 protected:
  static std::string error_of(const std::string& more, const std::vector<std::string>& settings = {}) {
    std::string text;
    for (const std::string& problem : problems_of(kShortest + more, settings)) text += problem + "\n";
    return text;
  }
};

TEST_F(FieldWordErrors, KeysLeadToOurs) {
  for (const auto& [text, hint] : std::vector<std::pair<std::string, std::string>>{
           {"lr = 0.1\n", "f.toml:5:1: lr: unknown key; did you mean \"learning_rate\" (in [local])?"},
           {"batch_size = 32\n", "did you mean \"batch\" (in [local])?"},
           {"num_clients = 10\n", "did you mean \"clients\" (in [partition])?"},
           {"local_epochs = 5\n", "did you mean \"epochs\" (in [local])?"},
           {"num_rounds = 5\n", "did you mean \"rounds\"?"},
           {"sample_fraction = 0.1\n", "did you mean \"fraction\" (in [participation])"},
           {"[local]\nkind = \"sgd\"\nlr = 0.1\n", "local.lr: unknown key; did you mean \"learning_rate\"?"},
           {"[local]\nkind = \"sgd\"\nbatch-size = 3\n", "did you mean \"batch\"?"},
           {"[partition]\nnum_users = 3\n", "did you mean \"clients\"?"},
           {"[dataset]\nx = 1\n", "did you mean \"data\"?"},
           {"[sweeps]\nseeds = 3\n", "sweeps: unknown key; did you mean \"sweep\"?"},
           {"[compression]\nkind = \"top_k\"\n", "did you mean [compressor.up]?"},
           {"[error_feedback]\nkind = \"ef14\"\n", "did you mean [feedback.up]?"},
           {"[optimizer]\nlr = 0.1\n", "did you mean \"local_optimizer\" (for clients sgd and adamw; "},
           {"seeds = 5\n", "seeds: must be a table, is 5; did you mean \"seeds\" (in [sweep])?"},
           {"participation = 0.1\n", "must be a table, is 0.1; did you mean \"fraction\" (in [participation])"},
           {"local = \"sgd\"\n", "must be a table, is \"sgd\"; write local = { kind = \"sgd\" }"},
           {"[local]\nkind = \"gradient\"\nepochs = 3\n", "\"epochs\" goes with kind = "},
           {"[sweep]\nlr = [0.1, 0.2]\n", "an axis is written [[sweep.axis]] with key = \"local.learning_rate\" and values"},
           {"[[sweep.axis]]\nkey = \"partition.alpha\"\nvalues = [1]\nevaluate.every = 1\n",
            "keys of the scenario come before [sweep] and its axes"},
           {"[sweep]\nseeds = [1, 2, 3]\n", "must be an integer, is [1, 2, 3]; it is the number of seeds: 3 plays the seeds 1, 2 and 3"},
           {"[sweep]\npartition.alpha = [0.1, 0.2]\n", "an axis is written [[sweep.axis]] with key = \"partition.alpha\" and values"},
           {"[sweep]\n\"partition.alpha\" = [0.1]\n", "an axis is written [[sweep.axis]] with key = \"partition.alpha\" and values"}})
    EXPECT_THAT(error_of(text), HasSubstr(hint)) << text;
  EXPECT_THAT(error_of("", {"lr=0.1"}), HasSubstr("--set lr=0.1: lr: unknown key; did you mean \"learning_rate\" (in [local])?"));
}

TEST_F(FieldWordErrors, NamesOfPartsAndValuesLeadToOurs) {
  for (const auto& [text, hint] : std::vector<std::pair<std::string, std::string>>{
           {"[partition]\nkind = \"iid\"\n", "unknown partitioner \"iid\"; did you mean \"shuffled\"?"},
           {"[partition]\nkind = \"non-iid\"\n",
            "did you mean \"dirichlet_class\" (or \"dirichlet_client\", which gives each client a mixture of classes)?"},
           {"[partition]\nkind = \"pathological\"\n", "did you mean \"sorted_by_label\" with partition.pieces_per_client = 2?"},
           {"[compressor.up]\nkind = \"randk\"\n", "did you mean \"random_k\"?"},
           {"[compressor.up]\nkind = \"none\"\n", "did you mean \"identity\"?"},
           {"[compressor.up]\nkind = \"no compression\"\n", "did you mean \"identity\"?"},
           {"[compressor.up]\nkind = \"ef21\"\n", "did you mean kind = \"ef21\" (in [feedback.up])?"},
           {"[feedback.up]\nkind = \"ef-sgd\"\n", "did you mean \"ef14\"?"},
           {"[feedback.up]\nkind = \"top_k\"\n", "did you mean kind = \"top_k\" (in [compressor.up])?"},
           {"[local]\nkind = \"fedprox\"\n", "did you mean \"sgd\" with local.proximal_mu = 0.01?"},
           {"[server]\nkind = \"fedadam\"\n", "did you mean \"adam\"?"},
           {"[server]\nkind = \"FedYogi\"\n", "did you mean \"yogi\"?"},
           {"[server]\nkind = \"fednova\"\n", "did you mean average = \"normalised\" (in [server])?"},
           {"[participation]\nkind = \"bernoulli\"\n", "did you mean \"poisson\"?"},
           {"precision = \"double\"\n", "precision: must be one of float32, float64; did you mean \"float64\"?"},
           {"[compressor.up]\nscope = \"layerwise\"\n", "did you mean \"tensor\"?"}})
    EXPECT_THAT(error_of(text), HasSubstr(hint)) << text;
  for (const auto& [model, near] : std::vector<std::pair<std::string, std::string>>{
           {"cnn", "cnn_mcmahan"}, {"lstm", "char_lstm"}, {"logreg", "logistic_regression"}, {"lr", "logistic_regression"}})
    EXPECT_EQ(nearest_name(model, Registry::instance().names("model")), near);
}

// The example of every part is a scenario's line: it is read, and names the part.
TEST_F(FieldWordErrors, ExamplesOfPartsAreRead) {
  for (const std::string& role : Registry::instance().roles()) {
    if (table_of_role(role).empty()) continue;
    for (const std::string& name : Registry::instance().names(role)) {
      const std::string example = example_of_part(role, name);
      EXPECT_THAT(example, HasSubstr(name));
      if (role == "model" || role == "data") continue;  // the shortest scenario has these tables
      EXPECT_EQ(error_of(example + "\n"), "") << example;
    }
  }
}

}  // namespace
}  // namespace fl::test
