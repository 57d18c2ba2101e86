#include "scenarios/file/sweep.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/scenarios/test_parts.hpp"

namespace fl::test {
namespace {

// The example of a heterogeneity study, with `hard` standing where the threshold of its second compressor is chosen.
std::string study(const std::string& hard) {
  return R"(
name   = "fmnist-dirichlet"
rounds = 300
seed   = 1
stop   = { accuracy = 0.85 }

[data]
name = "fashion-mnist"
[partition]
kind = "dirichlet_client"
alpha = 0.1
concentration = "per_class"
clients = 100
[model]
kind = "mlp"
hidden = [200, 200]
[local]
kind = "sgd"
steps = 5
batch = 32
learning_rate = 0.05
[participation]
kind = "uniform"
fraction = 0.1
[compressor.up]
kind = "hard_threshold"
threshold = 0.01
unit = "update"
scope = "model"
[feedback.up]
kind = "ef14"
[server]
kind = "sgd"
learning_rate = 1.0
[evaluate]
every = 10

[sweep]
seeds = 10
[[sweep.axis]]
key = "partition.alpha"
values = [0.05, 0.1, 0.5, 1.0, 100.0]
[[sweep.axis]]
key = "compressor.up"
values = [ {label="top-1%", kind="top_k", ratio=0.01}, {label="hard", kind="hard_threshold", )" +
         hard + R"(}, {label="none", kind="identity"} ]
)";
}

class SweepTest : public ScenarioTest {
 protected:
  static std::string text(const std::string& more) { return kShortest + more; }
  static std::string problem(const std::string& more, const std::vector<std::string>& settings = {}) {
    const std::vector<std::string> all = problems_of(text(more), settings);
    return all.size() == 1 ? all[0] : std::to_string(all.size()) + " problems" + (all.empty() ? "" : ": " + all[0]);
  }
};

TEST_F(SweepTest, AFileWithoutSweepIsOneCell) {
  const std::vector<Cell> cells = parse_cells(kShortest, "f.toml");
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_TRUE(cells[0].axis_labels.empty());
  EXPECT_EQ(cells[0].resolved_toml, to_toml(cells[0].scenario));
  EXPECT_EQ(cells[0].hash, hash_of_text(cells[0].resolved_toml));
}

TEST_F(SweepTest, TheStudyExpandsAxesOutsideSeedsInside) {
  const std::vector<Cell> cells = parse_cells(study("threshold = 0.02"), "f.toml");
  ASSERT_EQ(cells.size(), 150u);
  using Labels = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(cells[0].axis_labels, (Labels{{"partition.alpha", "0.05"}, {"compressor.up", "top-1%"}}));
  EXPECT_EQ(cells[9].axis_labels, cells[0].axis_labels);
  EXPECT_EQ(cells[9].scenario.seeds.data, 10u);
  EXPECT_EQ(cells[9].scenario.seeds.compressor, 10u);
  EXPECT_EQ(cells[10].axis_labels, (Labels{{"partition.alpha", "0.05"}, {"compressor.up", "hard"}}));
  EXPECT_EQ(cells[10].scenario.seeds.data, 1u);
  EXPECT_EQ(cells[149].axis_labels, (Labels{{"partition.alpha", "100"}, {"compressor.up", "none"}}));
  EXPECT_EQ(option(cells[0].scenario.partition.part, "alpha"), "0.05");
  EXPECT_EQ(option(cells[0].scenario.partition.part, "concentration"), "\"per_class\"");
  EXPECT_EQ(option(cells[149].scenario.partition.part, "alpha"), "100.0");
  EXPECT_EQ(option(cells[10].scenario.compressor_up("").part, "threshold"), "0.02");
  for (const std::size_t cell : {0, 10, 149})
    EXPECT_EQ(cells[cell].scenario.compressor_up("").unit, Unit::update) << "the unit of the base table holds for every method";
  EXPECT_EQ(cells[149].scenario.compressor_up("").part.kind, "identity");
  EXPECT_EQ(cells[149].scenario.stop.accuracy, 0.85);
  std::set<std::uint64_t> hashes;
  for (const Cell& cell : cells) hashes.insert(cell.hash);
  EXPECT_EQ(hashes.size(), 150u);
}

TEST_F(SweepTest, MatchingBitsIsAskedForAndIsNoOption) {
  for (const Cell& cell : parse_cells(study("match_bits_of = \"top-1%\""), "f.toml", {"sweep.seeds=1"})) {
    const bool is_hard = cell.axis_labels[1].second == "hard";
    ASSERT_EQ(cell.match.has_value(), is_hard);
    ASSERT_EQ(cell.needs_tuning(), is_hard);
    if (is_hard) {
      ASSERT_EQ(cell.match->reference, "top-1%");
      ASSERT_EQ(cell.match->option, "compressor.up.threshold");
      ASSERT_EQ(cell.match->axis, 1u);
    }
    ASSERT_EQ(cell.resolved_toml.find("match_bits_of"), std::string::npos);
  }
}

TEST_F(SweepTest, EveryCellReadsBackAsItself) {
  for (const Cell& cell : parse_cells(study("threshold = \"1/d\""), "f.toml", {"sweep.seeds=2"})) {
    const std::vector<Cell> again = parse_cells(cell.resolved_toml, "resolved.toml");
    ASSERT_EQ(again.size(), 1u);
    ASSERT_EQ(again[0].resolved_toml, cell.resolved_toml);
    ASSERT_EQ(again[0].hash, cell.hash);
  }
}

// Scenarios that are written differently but have the same meaning are the same run.
TEST_F(SweepTest, TheHashDependsOnMeaningOnly) {
  const auto hash = [](const std::string& t, const std::vector<std::string>& s = {}) { return parse_cells(t, "f.toml", s)[0].hash; };
  const std::uint64_t base = hash(kShortest);
  EXPECT_EQ(hash("# comment\nrounds = 5\nname = 'short'\n[model]\nkind = \"logistic_regression\"\n[data]\nname = \"a9a\"\n"), base);
  EXPECT_EQ(hash(text("seed = 1\n[model.x]\n").substr(0, text("seed = 1\n").size())), base);
  EXPECT_EQ(hash(text("partition = {clients = 10}\nprecision = \"float32\"\n")), base);
  EXPECT_EQ(hash(text("seeds = {data=1, init=1, sampling=1, compressor=1}\n")), base);
  EXPECT_EQ(hash(text("[sweep]\nseeds = 3\n")), base);
  EXPECT_EQ(hash(kShortest, {"rounds=5"}), base);
  EXPECT_NE(hash(kShortest, {"rounds=6"}), base);
  EXPECT_NE(hash(text("seed = 2\n")), base);
}

TEST_F(SweepTest, SeedsCountUpFromEachSeed) {
  const std::vector<Cell> cells = parse_cells(text("seed = 5\nseeds.sampling = 70\nsweep.seeds = 3\n"), "f.toml");
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[2].scenario.seeds.data, 7u);
  EXPECT_EQ(cells[2].scenario.seeds.sampling, 72u);
}

TEST_F(SweepTest, SettingsReachSweepAndWholeTables) {
  EXPECT_EQ(parse_cells(text(""), "f.toml", {"sweep={seeds=2, axis=[{key=\"rounds\", values=[1,2,3]}]}"}).size(), 6u);
  const Cell cell = parse_cells(text("[compressor.up]\nkind = \"hard_threshold\"\nthreshold = 3\n"), "f.toml",
                                {"compressor.up={kind=\"top_k\", k=4}", "compressor.up.k = 5", "data.name=w8a", "name = 2024-01-01"})[0];
  EXPECT_EQ(cell.scenario.compressor_up("").part.kind, "top_k");
  EXPECT_EQ(option(cell.scenario.compressor_up("").part, "k"), "5");
  EXPECT_EQ(cell.scenario.data.name, "w8a");
  EXPECT_EQ(cell.scenario.name, "2024-01-01");
  EXPECT_EQ(parse_cells(study("threshold = 1"), "f.toml", {"sweep.axis=[]", "partition.alpha=3"}).size(), 10u);
}

TEST_F(SweepTest, ASettingUnderAnAxisIsRefused) {
  const std::vector<std::string> all = problems_of(study("threshold = 1"), {"compressor.up.threshold=3"});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0],
            "--set compressor.up.threshold=3: compressor.up.threshold: has no effect, because an axis of [sweep] sets compressor.up; "
            "--set sweep.axis=[] drops the axes");
}

TEST_F(SweepTest, ASettingThatSomeMethodInheritsIsTaken) {
  const std::vector<Cell> cells = parse_cells(study("threshold = 1"), "f.toml", {"compressor.up.unit=gradient", "compressor.up.k=3"});
  for (const std::size_t cell : {0, 10, 149}) EXPECT_EQ(cells[cell].scenario.compressor_up("").unit, Unit::gradient);
  EXPECT_EQ(option(cells[10].scenario.compressor_up("").part, "k"), "3") << "hard has the kind of the base table";
  EXPECT_NE(option(cells[0].scenario.compressor_up("").part, "k"), "3");
}

// Checks which values a table of an axis inherits from the table that it replaces.
TEST_F(SweepTest, ATableOfAnAxisInheritsUnitScopeAndTheOptionsOfItsKind) {
  const std::vector<Cell> cells = parse_cells(text(R"(
    [compressor.up]
    kind = "top_k"
    ratio = 0.25
    unit = "step"
    scope = "bucket"
    bucket = 8
    exclude = ["bias"]
    [partition]
    kind = "shuffled"
    clients = 7
    [[sweep.axis]]
    key = "compressor.up"
    values = [ {label = "same", kind = "top_k"}, {label = "k", kind = "top_k", k = 3}, {label = "bare", scope = "model"},
               {label = "other", kind = "hard_threshold", threshold = 0.5}, {label = "own", kind = "identity", unit = "gradient", exclude = []} ]
    [[sweep.axis]]
    key = "partition"
    values = [ {label = "sorted", kind = "sorted_by_label"} ]
  )"),
                                              "f.toml");
  ASSERT_EQ(cells.size(), 5u);
  const auto spec = [&](std::size_t cell) { return cells[cell].scenario.compressor_up(""); };
  for (const std::size_t cell : {0, 1, 3}) {
    EXPECT_EQ(spec(cell).unit, Unit::step);
    EXPECT_EQ(spec(cell).scope, ScopeKind::bucket);
    EXPECT_EQ(spec(cell).bucket, 8);
    EXPECT_EQ(spec(cell).exclude, std::vector<std::string>{"bias"});
  }
  EXPECT_EQ(option(spec(0).part, "ratio"), "0.25");
  EXPECT_EQ(option(spec(1).part, "k"), "3") << "k takes the place of ratio";
  EXPECT_EQ(spec(2).part.kind, "top_k");
  EXPECT_EQ(option(spec(2).part, "ratio"), "0.25");
  EXPECT_EQ(spec(2).scope, ScopeKind::model);
  EXPECT_EQ(spec(2).bucket, 0) << "a bucket's size belongs to its scope";
  EXPECT_EQ(spec(4).unit, Unit::gradient);
  EXPECT_TRUE(spec(4).exclude.empty());
  for (const Cell& cell : cells) EXPECT_EQ(cell.scenario.partition.clients, 7);
}

TEST_F(SweepTest, AxesMaySetKindsAndThenTheirOptions) {
  const std::vector<Cell> cells = parse_cells(text(R"(
    [[sweep.axis]]
    key = "compressor.up"
    values = [ {label = "a", kind = "top_k"}, {label = "b", kind = "top_k", scope = "tensor"} ]
    [[sweep.axis]]
    key = "compressor.up.k"
    values = [1, 2]
  )"),
                                              "f.toml");
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(option(cells[3].scenario.compressor_up("").part, "k"), "2");
  EXPECT_EQ(cells[3].scenario.compressor_up("").scope, ScopeKind::tensor);
}

TEST_F(SweepTest, WrongSweepsAreRefused) {
  EXPECT_EQ(problem("sweep = 3\n"), "f.toml:5:9: sweep: must be a table, is 3");
  EXPECT_EQ(problem("[sweep]\nseeds = 0\n"), "f.toml:6:9: sweep.seeds: must be >= 1, is 0");
  EXPECT_EQ(problem("[sweep]\nseed = 3\n"),
            "f.toml:6:1: sweep.seed: unknown key; did you mean \"seeds\"? (known: seeds, axis, exclude, set, tune, to_bits_of, plan_file)");
  EXPECT_EQ(problem("[sweep]\naxis = 3\n"), "f.toml:6:8: sweep.axis: must be a list of tables, [[sweep.axis]], is 3");
  EXPECT_EQ(problem("[sweep]\naxis = [3]\n"), "f.toml:6:9: sweep.axis: must be a table with key and values, is 3");
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"rounds\"\n"),
            "f.toml:5:1: sweep.axis.values: is missing and has no default; its meaning: the list of its values");
  EXPECT_EQ(
      problem("[[sweep.axis]]\nvalues = [1]\n"),
      "f.toml:5:1: sweep.axis.key: is missing and has no default; its meaning: the key that the axis moves, such as \"partition.alpha\"");
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"rounds\"\nvalues = []\n"),
            "f.toml:7:10: sweep.axis.values: must be a list with at least one value, is []");
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"a b\"\nvalues = [1]\n"),
            "f.toml:6:7: sweep.axis.key: must be a key of the scenario, such as \"partition.alpha\", is \"a b\"");
  EXPECT_TRUE(starts_with(problem("[[sweep.axis]]\nkey = \"rouds\"\nvalues = [1, 2]\n"),
                          "f.toml:6:7: rouds: unknown key; did you mean \"rounds\"?"));
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"rounds\"\nvalues = [1, 0, 2]\n"), "f.toml:7:14: rounds: must be >= 1, <= 268435455, is 0");
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"rounds.x\"\nvalues = [1]\n"),
            "f.toml:7:11: rounds.x: rounds is not a table, so it has no \"x\"");
}

TEST_F(SweepTest, LabelsAreNeededAndDiffer) {
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"compressor.up\"\nvalues = [{kind = \"top_k\"}]\n"),
            "f.toml:7:11: sweep.axis.values.label: is missing and has no default; its meaning: the name of this table in results");
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"compressor.up\"\nvalues = [{label = 3, kind = \"top_k\"}]\n"),
            "f.toml:7:20: sweep.axis.values.label: must be a string that is not empty, is 3");
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"rounds\"\nvalues = [1, 2, 1]\n"),
            "f.toml:7:17: sweep.axis.values: two values of rounds are called \"1\"; labels must differ");
}

TEST_F(SweepTest, AxesThatOverwriteEachOtherAreRefused) {
  EXPECT_EQ(problem("[[sweep.axis]]\nkey = \"rounds\"\nvalues = [1]\n[[sweep.axis]]\nkey = \"rounds\"\nvalues = [2]\n"),
            "f.toml:9:7: sweep.axis.key: rounds overwrites the earlier axis rounds; keep one of them");
  EXPECT_TRUE(contains(problem("[[sweep.axis]]\nkey = \"compressor.up.k\"\nvalues = [1]\n[[sweep.axis]]\nkey = \"compressor.up\"\nvalues = "
                               "[{label=\"a\", kind=\"top_k\"}]\n"),
                       "compressor.up overwrites the earlier axis compressor.up.k; put the axis of the whole table first"));
}

TEST_F(SweepTest, SizesAndSeedsAreBounded) {
  EXPECT_TRUE(contains(problem("sweep.seeds = 100000000\n"), "sweep: must have at most 100000 cells, has 1e+08"));
  EXPECT_EQ(problem("seed = 9223372036854775807\n"), "0 problems");
  EXPECT_TRUE(contains(problem("seed = 9223372036854775807\nsweep.seeds = 2\n"), "the last seed must be at most 9223372036854775807"));
}

}  // namespace
}  // namespace fl::test
