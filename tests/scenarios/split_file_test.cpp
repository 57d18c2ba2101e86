// Tests that a split written to a file and read again has the same rows, the same split_hash and the same run.
#include "scenarios/partitioners/split_file.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fl_core/config/error.hpp"
#include "scenarios/experiment/split_statistics.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::run_text;
using test::ScenarioText;
using testing::HasSubstr;

class SplitFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_split_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string file() const { return (folder_ / "split.csv").string(); }
  [[nodiscard]] std::string text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(file()) << text; }
  void write_split_of(const ScenarioText& s) const {
    const SplitFile split = only_split(parse_cells(s.str(), "test.toml"), DataCatalog(""));  // may read the file that is written
    std::ofstream out(file());
    write_split(split, out);
  }
  [[nodiscard]] ScenarioText from_file(ScenarioText s, int clients = 0) const {
    s.partition = "kind = 'file'\npath = '" + file() + "'\nclients = " + std::to_string(clients);
    return s;
  }
  [[nodiscard]] std::string refusal(const ScenarioText& s) const {
    try {
      (void)run_text(s.str());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  fs::path folder_;
};

ScenarioText study_of_split(const std::string& partition) {
  ScenarioText s = test::mushrooms(5);
  s.rounds = 3;
  s.partition = partition;
  s.evaluate = "every = 1";
  return s;
}

void expect_same_run(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.record.split_hash, b.record.split_hash);
  EXPECT_EQ(a.record.checksum, b.record.checksum);
  EXPECT_EQ(a.record.bits_up, b.record.bits_up);
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (std::size_t r = 0; r < a.rows.size(); ++r) {
    EXPECT_EQ(a.rows[r].train_loss, b.rows[r].train_loss) << r;
    EXPECT_EQ(a.rows[r].f_gap, b.rows[r].f_gap) << r;
    EXPECT_EQ(a.rows[r].zeta_sq, b.rows[r].zeta_sq) << r;
  }
}

TEST_F(SplitFileTest, ARoundTripGivesTheSameRun) {
  for (const char* partition : {"kind = 'dirichlet_client'\nalpha = 0.3\nclients = 5", "kind = 'sorted_by_label'\nclients = 7",
                                "kind = 'shuffled'\nclients = 3", "kind = 'dirichlet_class'\nbeta = 0.5\nclients = 4"}) {
    const ScenarioText s = study_of_split(partition);
    write_split_of(s);
    expect_same_run(run_text(s.str()).at(0), run_text(from_file(s).str()).at(0));
    const std::string first = text();
    write_split_of(from_file(s));
    EXPECT_EQ(text(), first);
  }
}

// Held-out rows are not among those that are split; quadratics have neither labels nor targets.
TEST_F(SplitFileTest, HeldOutRowsAndDataWithoutLabels) {
  ScenarioText held = study_of_split("kind = 'shuffled'\nclients = 4");
  held.data += "\ntest_fraction = 0.2";
  write_split_of(held);
  expect_same_run(run_text(held.str()).at(0), run_text(from_file(held).str()).at(0));
  ScenarioText quadratics = test::uneven_quadratics();
  quadratics.rounds = 3;
  quadratics.evaluate = "every = 1";
  write_split_of(quadratics);
  EXPECT_THAT(text(), HasSubstr("# rows = 11\n# clients = 4\n"));
  expect_same_run(run_text(quadratics.str()).at(0), run_text(from_file(quadratics, 4).str()).at(0));
}

// Rows without a client are not part of f: the run equals one on data without them.
TEST_F(SplitFileTest, UnusedRowsTakeNoPart) {
  ScenarioText all = study_of_split("kind = 'contiguous'\nclients = 2");
  all.data += "\nfeatures = 112";
  ScenarioText few = all;
  std::string lines = "row,client\n";
  const auto rows = only_split(parse_cells(all.str(), "t"), DataCatalog("")).client_of.size();
  for (std::size_t row = 0; row < rows; ++row) lines += std::to_string(row) + (row >= 100 ? ",-\n" : row < 50 ? ",0\n" : ",1\n");
  write(lines);
  few.data.replace(few.data.find("1003"), 4, "100");
  const RunResult expected = run_text(few.str()).at(0), got = run_text(from_file(all, 2).str()).at(0);
  expect_same_run(got, expected);
}

TEST_F(SplitFileTest, EveryMistakeIsNamed) {
  const ScenarioText s = study_of_split("kind = 'contiguous'\nclients = 3");
  write_split_of(s);
  const std::string good = text();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    write(changed);
    return refusal(from_file(s));
  };
  EXPECT_THAT(with("\n7,", "\n6,"), HasSubstr("row 6 stands there twice"));
  EXPECT_THAT(with("\n7,0\n", "\n"), HasSubstr("row 7 is missing"));
  EXPECT_THAT(with("\n7,0", "\n7;0"), HasSubstr(file() + ":14: expected \"row,client\""));
  EXPECT_THAT(with("\n7,0", "\n7,3"), HasSubstr("says that it has 3 clients, and has 4"));
  EXPECT_THAT(with("row,client", "client,row"), HasSubstr("expected the columns \"row,client\""));
  EXPECT_THAT(with("# data_hash = ", "# data_hash = 0123456789abcdef\n# was "), HasSubstr("the training set has"));
  write(good);
  EXPECT_THAT(refusal(from_file(s, 4)), HasSubstr("has 3 clients, partition.clients is 4; set clients = 3, or 0"));
  ScenarioText fewer = from_file(s);
  fewer.data.replace(fewer.data.find("1003"), 4, "50");
  EXPECT_THAT(refusal(fewer), HasSubstr("rows, the training set has 50"));
  write("row,client\n0,0\n1,2\n2,2\n");
  EXPECT_THAT(refusal(from_file(s)), HasSubstr("client 1 has no row"));
  write("row,client\n0,-\n");
  EXPECT_THAT(refusal(from_file(s)), HasSubstr("gives no row to any client"));
  std::filesystem::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_THAT(refusal(from_file(s)), HasSubstr("partition.path: cannot read '" + file() + "': it is a pipe"));
}

TEST_F(SplitFileTest, FeatureShiftsAndSeveralSplitsAreRefused) {
  ScenarioText s = study_of_split("kind = 'feature_noise'\nclients = 3");
  EXPECT_THROW(write_split_of(s), ConfigError);
  s = study_of_split("kind = 'shuffled'\nclients = 3");
  s.more = "[[sweep.axis]]\nkey = 'partition.clients'\nvalues = [2, 3]\n";
  EXPECT_THROW(write_split_of(s), ConfigError);
}

// A relative path is found beside the scenario file.
TEST_F(SplitFileTest, LiesBesideTheScenario) {
  ScenarioText s = study_of_split("kind = 'shuffled'\nclients = 3");
  write_split_of(s);
  s.partition = "kind = 'file'\npath = 'split.csv'\nclients = 3";
  std::ofstream(folder_ / "study.toml") << s.str();
  CellRunner runner(DataCatalog(""), {});
  const std::vector<Cell> cells = read_cells(folder_ / "study.toml");
  EXPECT_NO_THROW((void)runner.check(cells.at(0)));
}

}  // namespace
}  // namespace fl
