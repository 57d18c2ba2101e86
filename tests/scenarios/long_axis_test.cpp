// Tests that a combination of a sweep, which is read table by table, equals the scenario of the file without axes with the combination's
// values set.
#include <gtest/gtest.h>

#include "tests/scenarios/test_parts.hpp"

namespace fl::test {
namespace {

struct LongAxis {
  std::string key;
  std::vector<std::string> values;  // as TOML
};

class LongAxisTest : public ScenarioTest {
 protected:
  static constexpr const char* kFile =
      "name = \"long\"\nrounds = 5\nseeds.data = 3\n[data]\nname = \"mushrooms\"\nrows = 500\n[partition]\nclients = 4\n"
      "[model]\nkind = \"logistic_regression\"\n[local]\nkind = \"sgd\"\nsteps = 2\n[compressor.up]\nkind = \"top_k\"\nratio = 0.1\n"
      "[compressor.up.control]\nkind = \"qsgd\"\n[participation]\nkind = \"uniform\"\n[evaluate]\nevery = 2\n";

  static std::string with_axes(const std::vector<LongAxis>& axes) {
    std::string text = kFile;
    text += "[sweep]\nseeds = 2\n";
    for (const LongAxis& axis : axes) {
      text += "[[sweep.axis]]\nkey = \"" + axis.key + "\"\nvalues = [";
      for (const std::string& value : axis.values) text += value + ", ";
      text += "]\n";
    }
    return text;
  }
};

TEST_F(LongAxisTest, EachCombinationIsTheScenarioWithItsValues) {
  const std::vector<std::vector<LongAxis>> sweeps = {
      {{"rounds", {"3", "7"}}, {"local.learning_rate", {"0.1", "\"1/L\""}}},
      {{"seed", {"1", "5"}}},
      {{"seeds.init", {"1", "5"}}, {"partition.clients", {"2", "6"}}},
      {{"partition.kind", {"\"shuffled\"", "\"sorted_by_label\"", "\"shards\""}}, {"precision", {"\"float64\"", "\"float32\""}}},
      {{"compressor.up.ratio", {"0.2", "0.3"}}, {"compressor.up.control.levels", {"3", "9"}}},
      {{"compressor.down", {"\"model\"", "\"changes\""}}, {"server.momentum", {"0.1", "0.2"}}},
      {{"data.test_fraction", {"0.1", "0.2"}}, {"model.l2", {"0.1", "\"L/10\""}}},
      {{"stop.accuracy", {"0.7", "0.8"}}, {"evaluate.optimum", {"true", "false"}}, {"feedback.up.kind", {"\"none\"", "\"ef14\""}}},
      {{"start.kind", {"\"zero\"", "\"random\""}}, {"data.augment.crop", {"0", "2"}}, {"participation.fraction", {"0.5", "1"}}}};
  for (const std::vector<LongAxis>& axes : sweeps) {
    const std::vector<Cell> cells = parse_cells(with_axes(axes), "f.toml");
    std::size_t count = 2;
    for (const LongAxis& axis : axes) count *= axis.values.size();
    ASSERT_EQ(cells.size(), count);
    for (std::size_t i = 0; i < cells.size(); i += 2) {
      std::vector<std::string> settings;
      std::size_t number = i / 2;
      for (std::size_t a = axes.size(); a-- > 0; number /= axes[a].values.size())
        settings.push_back(axes[a].key + "=" + axes[a].values[number % axes[a].values.size()]);
      const std::vector<Cell> alone = parse_cells(with_axes({}), "f.toml", settings);
      for (std::size_t seed = 0; seed < 2; ++seed) {
        EXPECT_EQ(cells[i + seed].resolved_toml, to_toml(cells[i + seed].scenario));
        if (axes[0].key == "data.test_fraction") continue;  // all combinations share the first one's test seed
        EXPECT_EQ(cells[i + seed].resolved_toml, alone[seed].resolved_toml) << settings[0];
        EXPECT_EQ(cells[i + seed].hash, alone[seed].hash);
      }
    }
  }
}

// Values that are tables bring other keys and other tables. The first combination of a sweep is read as a whole.
TEST_F(LongAxisTest, EachCombinationOfTablesIsTheFirstOneOfItsOwnSweep) {
  const std::vector<std::vector<LongAxis>> sweeps = {
      {{"local.learning_rate", {"0.1", "0.2"}},
       {"compressor.up",
        {"{ label = \"a\", kind = \"identity\" }", "{ label = \"b\", kind = \"top_k\", ratio = 0.2 }",
         "{ label = \"c\", kind = \"qsgd\" }"}},
       {"seed", {"2", "4"}}},
      {{"compressor.up", {"{ label = \"b\", kind = \"top_k\", ratio = 0.2 }", "{ label = \"d\", kind = \"random_k\", scaled = true }"}},
       {"compressor.up.ratio", {"0.3", "0.4"}},
       {"local", {"{ label = \"e\", kind = \"sgd\", steps = 3 }", "{ label = \"f\", kind = \"gradient\" }"}}}};
  for (const std::vector<LongAxis>& axes : sweeps) {
    const std::vector<Cell> cells = parse_cells(with_axes(axes), "f.toml");
    for (std::size_t i = 0; i < cells.size(); i += 2) {
      std::vector<LongAxis> own = axes;
      std::size_t number = i / 2;
      for (std::size_t a = axes.size(); a-- > 0; number /= axes[a].values.size())
        own[a].values = {axes[a].values[number % axes[a].values.size()]};
      const std::vector<Cell> alone = parse_cells(with_axes(own), "f.toml");
      for (std::size_t seed = 0; seed < 2; ++seed) {
        EXPECT_EQ(cells[i + seed].resolved_toml, to_toml(cells[i + seed].scenario));
        EXPECT_EQ(cells[i + seed].resolved_toml, alone[seed].resolved_toml);
        EXPECT_EQ(cells[i + seed].hash, alone[seed].hash);
      }
    }
  }
}

// Problems of later values are those of the value, as without the others.
TEST_F(LongAxisTest, LaterCombinationsAreCheckedAsTheFirstIs) {
  const std::vector<std::string> all = problems_of(with_axes({{"partition.kind", {"\"shuffled\"", "\"natral\""}}, {"rounds", {"3", "0"}}}));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(contains(all[0] + all[1], "unknown partitioner \"natral\"; did you mean \"natural\"?"));
  EXPECT_TRUE(contains(all[0] + all[1], "rounds: must be >= 1"));
  const std::vector<std::string> kinds = problems_of(with_axes({{"compressor.up.kind", {"\"top_k\"", "\"sign\""}}}));
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_TRUE(contains(kinds[0], "compressor.up.ratio: unknown key; \"ratio\" goes with kind = "));
}

}  // namespace
}  // namespace fl::test
