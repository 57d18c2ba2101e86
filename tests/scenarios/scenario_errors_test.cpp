// Tests every kind of error in a scenario file: the text gives the place, the problem and the solution.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/file/scenario_reader.hpp"
#include "tests/scenarios/test_parts.hpp"

namespace fl::test {
namespace {

class ScenarioErrors : public ScenarioTest {
 protected:
  // The only problem of the shortest scenario followed by `more`, which begins at line 5.
  static std::string problem(const std::string& more, const std::vector<std::string>& settings = {}) {
    const std::vector<std::string> all = problems_of(kShortest + more, settings);
    std::string text = all.empty() ? "no problem" : all[0];
    for (std::size_t i = 1; i < all.size(); ++i) text += "\n" + all[i];
    return text;
  }
};

TEST_F(ScenarioErrors, AWrongValueNamesPlaceConstraintAndValue) {
  EXPECT_EQ(problem("[partition]\nclients = 0\n"), "f.toml:6:11: partition.clients: must be >= 1, is 0");
  EXPECT_EQ(problem("[compressor.up]\nkind = \"top_k\"\nratio = -1\n"), "f.toml:7:9: compressor.up.ratio: must be > 0, <= 1, is -1");
  EXPECT_EQ(problem("[compressor.up]\nkind = \"top_k\"\nratio = nan\n"), "f.toml:7:9: compressor.up.ratio: must be finite, is nan");
  EXPECT_EQ(problem("[compressor.up]\nkind = \"top_k\"\nk = \"one\"\n"), "f.toml:7:5: compressor.up.k: must be an integer, is \"one\"");
  EXPECT_EQ(problem("[compressor.up]\nkind = \"top_k\"\nk = {}\n"), "f.toml:7:5: compressor.up.k: must be a value (integer), is a table");
  EXPECT_EQ(problem("[evaluate]\noptimum = 3\n"),
            "f.toml:6:11: evaluate.optimum: must be true, false or the path of a file that holds x*, is 3");
  EXPECT_EQ(problem("seed = -1\n"), "f.toml:5:8: seed: must be >= 0, is -1");
  EXPECT_EQ(problem("stop = { accuracy = 1.5 }\n"), "f.toml:5:21: stop.accuracy: must be > 0, <= 1, is 1.5");
  EXPECT_EQ(problem("stop = { bits = 0 }\n"), "f.toml:5:17: stop.bits: must be > 0, is 0");
  EXPECT_EQ(problem("stop = { seconds = 0 }\n"), "f.toml:5:20: stop.seconds: must be > 0, is 0");
}

TEST_F(ScenarioErrors, AWrongChoiceNamesTheNearest) {
  EXPECT_EQ(problem("precision = \"flaot32\"\n"), "f.toml:5:13: precision: must be one of float32, float64; did you mean \"float32\"?");
  EXPECT_EQ(problem("[compressor.up]\nunit = \"upate\"\n"),
            "f.toml:6:8: compressor.up.unit: must be one of auto, gradient, step, update; did you mean \"update\"?");
}

TEST_F(ScenarioErrors, AnUnknownKeyNamesTheNearestOfPartAndSection) {
  EXPECT_TRUE(starts_with(problem("[compressor.up]\nkind = \"top_k\"\nrati = 0.1\n"),
                          "f.toml:7:1: compressor.up.rati: unknown key; did you mean \"ratio\"? (known: kind, "));
  EXPECT_TRUE(starts_with(problem("[compressor.up]\nkind = \"top_k\"\nscpe = \"model\"\n"),
                          "f.toml:7:1: compressor.up.scpe: unknown key; did you mean \"scope\"? (known: kind, "));
  EXPECT_TRUE(starts_with(problem("[compresor.up]\nkind = \"top_k\"\n"),
                          "f.toml:5:2: compresor: unknown key; did you mean \"compressor\"? (known: results_version, name, rounds, "));
  EXPECT_EQ(problem("[compressor]\nkind = \"top_k\"\n"), "f.toml:6:1: compressor.kind: unknown key (known: up, down)");
  EXPECT_TRUE(starts_with(problem("[compressor.down]\nunit = \"step\"\n"), "f.toml:6:1: compressor.down.unit: unknown key"));
  EXPECT_EQ(problem("[compressor.down]\nkind = \"top_k\"\nk = 1\nsend = \"model\"\n"),
            "f.toml:8:8: compressor.down.send: has no effect with kind \"top_k\", which sends its own messages; drop it, or use kind = "
            "\"identity\"");
  EXPECT_EQ(problem("[compressor.down]\nsend = \"modl\"\n"),
            "f.toml:6:8: compressor.down.send: must be \"changes\" or \"model\", is \"modl\"; did you mean \"model\"?");
  EXPECT_EQ(problem("[compressor]\ndown = \"top_k\"\n"),
            "f.toml:6:8: compressor.down.send: must be \"changes\" or \"model\", is \"top_k\"");
  EXPECT_EQ(problem("[feedback.down]\nkind = \"ef14\"\n"), "f.toml:5:11: feedback.down: unknown key (known: up)");
}

TEST_F(ScenarioErrors, AnUnknownPartNamesTheNearest) {
  const std::string text = problem("[compressor.up]\nkind = \"topk\"\nk = 3\nscope = \"tesnor\"\n");
  EXPECT_TRUE(starts_with(text, "f.toml:6:8: compressor.up.kind: unknown compressor \"topk\"; did you mean \"top_k\"? known: "));
  EXPECT_TRUE(contains(text, "\nf.toml:8:9: compressor.up.scope: must be one of model, tensor, bucket; did you mean \"tensor\"?"));
  EXPECT_FALSE(contains(text, "compressor.up.k:")) << "the keys of an unknown part are not judged";
  EXPECT_EQ(problem("[compressor.up]\nkind = 3\n"), "f.toml:6:8: compressor.up.kind: must be a string, is 3");
}

TEST_F(ScenarioErrors, RequiredKeysAreAskedFor) {
  const std::vector<std::string> all = problems_of("seed = 1\n");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], "f.toml:1:1: name: is missing and has no default; its meaning: name of the run in results and reports");
  EXPECT_EQ(all[1], "f.toml:1:1: rounds: is missing and has no default; its meaning: the largest number of rounds that a run plays");
  EXPECT_EQ(all[2], "f.toml:1:1: data: needs data: set name (a known data set), path (a file) or kind (synthetic data)");
  EXPECT_TRUE(
      starts_with(all[3], "f.toml:1:1: model.kind: is missing and has no default; its meaning: the name of a part, one of 2nn_mcmahan, "));
  EXPECT_EQ(problem("[compressor.up]\nkind = \"test_odd\"\n"),
            "f.toml:5:1: compressor.up.low: is missing and has no default; its meaning: lower end");
}

TEST_F(ScenarioErrors, ConditionsBetweenKeysNameTheKey) {
  EXPECT_EQ(problem("[compressor.up]\nkind = \"test_odd\"\nhigh = 1\nlow = 2\n"), "f.toml:8:7: compressor.up.low: must be at most high");
  EXPECT_EQ(problem("[compressor.up]\nscope = \"bucket\"\n"), "f.toml:5:1: compressor.up.bucket: must be > 0 when scope = \"bucket\"");
  EXPECT_EQ(problem("[compressor.up]\nbucket = 5\n"), "f.toml:6:10: compressor.up.bucket: has no effect unless scope = \"bucket\"");
  EXPECT_EQ(problem("data.path = \"x\"\n"), "f.toml:3:1: data: name, path and kind exclude each other; keep one");
  EXPECT_EQ(problem("[start]\nkind = \"file\"\n"),
            "f.toml:5:1: start.path: must be given when kind = \"file\", because it names that file");
  EXPECT_EQ(problem("[start]\npath = \"x\"\n"), "f.toml:6:8: start.path: has no effect unless kind = \"file\"");
  EXPECT_EQ(problem("seed = 2\nseeds = {data=1, init=1, sampling=1, compressor=1}\n"),
            "f.toml:5:1: seed: has no effect, because [seeds] sets all four; drop one of them");
  EXPECT_EQ(problem("data.test = \"a9a.t\"\ndata.test_fraction = 0.1\n"),
            "f.toml:6:22: data.test_fraction: must be 0 when test names a file");
  const std::vector<std::string> all =
      problems_of("name=\"\"\nrounds=1\nmodel.kind=\"mlp\"\n[data]\nkind=\"test_numbers\"\nlow=0\nrows=5\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], "f.toml:1:6: name: must not be empty");
  EXPECT_TRUE(starts_with(all[1], "f.toml:7:1: data.rows: unknown key"));
}

TEST_F(ScenarioErrors, ATableMustBeATable) {
  EXPECT_EQ(problem("compressor = 3\n"), "f.toml:5:14: compressor: must be a table, is 3");
  EXPECT_EQ(problem("local = \"sgd\"\n"),
            "f.toml:5:9: local: must be a table, is \"sgd\"; write local = { kind = \"sgd\" }, and as a value of an axis { label = "
            "\"sgd\", kind = \"sgd\" }");
  EXPECT_EQ(problem("[[local]]\nkind = \"sgd\"\n"), "f.toml:5:1: local: must be a table, is a list of tables");
}

TEST_F(ScenarioErrors, RulesShowWhereTheyBreak) {
  EXPECT_EQ(problem("[local]\nkind = \"gradient\"\nlearning_rate = \"1/(L+\"\n"),
            "f.toml:7:17: local.learning_rate: \"1/(L+\": expected a number, a name or \"(\" at position 6");
}

TEST_F(ScenarioErrors, AllProblemsComeAtOnceInTheOrderOfTheFile) {
  const std::vector<std::string> all = problems_of(
      "name = 3\nrounds = 0\nspeed = 9\n[compressor.up]\nkind = \"top_k\"\nk = -1\nratio = 2.0\n[model]\nkind = \"mpl\"\n[data]\nname = "
      "\"a9a\"\n",
      {"evaluate.every=0"});
  ASSERT_EQ(all.size(), 7u);
  EXPECT_TRUE(starts_with(all[0], "f.toml:1:8: name: must be a string"));
  EXPECT_TRUE(starts_with(all[1], "f.toml:2:10: rounds: must be >= 1, <= 268435455, is 0"));
  EXPECT_TRUE(starts_with(all[2], "f.toml:3:1: speed: unknown key"));
  EXPECT_TRUE(starts_with(all[3], "f.toml:6:5: compressor.up.k: must be >= 1, <= 4294967295, is -1"));
  EXPECT_TRUE(starts_with(all[4], "f.toml:7:9: compressor.up.ratio: must be"));
  EXPECT_TRUE(starts_with(all[5], "f.toml:9:8: model.kind: unknown model \"mpl\"; did you mean \"mlp\"?"));
  EXPECT_EQ(all[6], "--set evaluate.every=0: evaluate.every: must be >= 1, <= 4294967295, is 0");
}

TEST_F(ScenarioErrors, BrokenTomlNamesLineAndColumn) {
  EXPECT_TRUE(starts_with(problem("[local\nkind = 1\n"), "f.toml:5:7: not valid TOML: "));
  EXPECT_TRUE(starts_with(problem("seed = \n"), "f.toml:5:8: not valid TOML: "));
  EXPECT_TRUE(contains(problem("rounds = 6\n"), "not valid TOML: "));
  EXPECT_TRUE(contains(problem("local = {\n kind = \"sgd\" }\n"),
                       "; a table in braces must be on one line; write [table] with its keys below to use several"));
  EXPECT_TRUE(contains(problem("seed = 99999999999999999999\n"), "f.toml:5:"));
  EXPECT_TRUE(contains(problem(std::string("x = \"\0\"\n", 8)), "not valid TOML: "));
  EXPECT_TRUE(contains(problem("x = \"\xFF\xFE\"\n"), "not valid TOML: "));
  EXPECT_TRUE(contains(problem("x = " + std::string(100000, '[')), "not valid TOML: "));
}

TEST_F(ScenarioErrors, KeysAndValuesThatNoOptionTakes) {
  EXPECT_EQ(problem("\"a b\" = 3\n"), "f.toml:5:1: a b: a key consists of letters, digits, _ and -, is \"a b\"");
  EXPECT_TRUE(contains(problem("[start]\npath = 2024-01-01\n"), "start.path: no option takes a date or a time"));
}

TEST_F(ScenarioErrors, SettingsAreCheckedAlike) {
  EXPECT_EQ(problem("", {"partition.clients=0"}), "--set partition.clients=0: partition.clients: must be >= 1, is 0");
  EXPECT_TRUE(starts_with(problem("", {"partition.client=3"}),
                          "--set partition.client=3: partition.client: unknown key; did you mean \"clients\"?"));
  EXPECT_TRUE(starts_with(problem("", {"compressor.up={kind=\"topk\"}"}),
                          "--set compressor.up={kind=\"topk\"}: compressor.up.kind: unknown compressor \"topk\"; did you mean \"top_k\"?"));
  EXPECT_EQ(problem("", {"name.first=x"}), "--set name.first=x: name.first: name is not a table, so it has no \"first\"");
  EXPECT_EQ(problem("", {"partition.clients"}), "--set partition.clients: must have the form key=value, such as partition.alpha=0.1");
  EXPECT_EQ(problem("", {"=3"}), "--set =3: \"\" is not a key: must be names joined by dots, such as partition.alpha");
  EXPECT_EQ(problem("", {"a..b=3"}), "--set a..b=3: \"a..b\" is not a key: must be names joined by dots, such as partition.alpha");
  EXPECT_EQ(problem("", {"name="}), "--set name=: name: needs a value; an empty string is 'name=\"\"'");
  EXPECT_TRUE(starts_with(problem("", {"name=[1,"}), "--set name=[1,: name: not a valid TOML value: "));
  EXPECT_TRUE(contains(problem("", {"name=a\nrounds=3"}), "a value is one line"));
  EXPECT_EQ(problem("", {"rounds=many"}), "--set rounds=many: rounds: must be an integer, is \"many\"");
}

class FileErrors : public ScenarioTest {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("fedbits-scenario-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string error_of(const std::filesystem::path& file) {
    try {
      static_cast<void>(read_cells(file));
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
  std::filesystem::path write(const std::string& text) {
    const auto file = folder_ / "s.toml";
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }

  std::filesystem::path folder_;
};

TEST_F(FileErrors, MissingEmptyFolderAndHugeFilesAreRefused) {
  const std::string file = (folder_ / "s.toml").string();
  EXPECT_EQ(error_of(file), file + ": there is no such scenario file");
  EXPECT_EQ(error_of(folder_), folder_.string() + ": is a folder; name the scenario file (*.toml) inside it");
  EXPECT_TRUE(starts_with(error_of(write("")), file + ":1:1: is empty"));
  EXPECT_TRUE(starts_with(error_of(write(" \n\t\n")), file + ":1:1: is empty"));
  EXPECT_EQ(error_of(write(std::string((16u << 20) + 1, '#'))), file + ": is larger than 16 MiB; this cannot be a scenario file");
}

TEST_F(FileErrors, AGoodFileIsReadAndABadOneNamed) {
  EXPECT_EQ(read_cells(write(kShortest)).size(), 1u);
  const std::string file = write("name = 1\n").string();
  EXPECT_TRUE(starts_with(error_of(file), file + ":1:1: rounds: is missing and has no default"));
  EXPECT_TRUE(contains(error_of(file), "\n" + file + ":1:8: name: must be a string, is 1"));
}

TEST_F(ScenarioErrors, APartMayNotReuseAKeyOfItsSection) {
  const Part part{"clash", Options::of<Odd>()};
  double low = 0;
  Section section{.path = "compressor.up", .role = "compressor"};
  check_no_shared_keys(part, section);
  section.keys.field("low", low, "");
  EXPECT_THROW(check_no_shared_keys(part, section), Error);
}

}  // namespace
}  // namespace fl::test
