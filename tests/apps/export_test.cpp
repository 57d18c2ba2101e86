#include "study/results/export.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "apps/fedbits/explain.hpp"
#include "fl_core/config/error.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

const std::string kScenario = "results_version = " + std::to_string(kLeastResultsVersion) + "\nname = \"plain\"\nrounds = 1\n";

class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "export_test_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    store_ = std::make_unique<RunStore>(RunStore::open(folder_ / "out", RunStore::Mode::create));
  }
  void TearDown() override {
    store_.reset();
    ::umount((folder_ / "disk").c_str());  // left when a test of a full disk was cut short
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // Two runs, the later hash first; the second has an axis that the first lacks.
  void add_two_runs() {
    RunRecord late{.run = "ff01", .name = "plain", .seed = 1, .status = RunStatus::done, .rounds = 1};
    late.bits_up = 1280;
    late.bits_down = 32000;
    late.train_loss = 0.1;
    late.f_gap = 1e-9;
    late.checksum = "c0de";
    late.seconds = 1.25;
    late.split_hash = "5a5a";
    late.scenario = kScenario;
    late.axes = {{"compressor.up", "top-1%, \"exact\""}};
    late.constants = {{"L", 1.5722182430111165}, {"mu", kNotMeasured}};
    store_->append(late, {first_row(), second_row()});
    RunRecord early{.run = "0a02", .name = "plain", .seed = 2, .status = RunStatus::diverged, .rounds = 0};
    early.train_loss = std::numeric_limits<double>::infinity();
    early.seconds = 2.5;
    early.axes = {{"compressor.up", "none"}, {"rounds", "7"}};
    store_->append(early, {RoundRow{}});
  }

  static RoundRow first_row() {
    RoundRow row;
    row.train_loss = 0.6931471805599453;
    return row;
  }
  static RoundRow second_row() {
    RoundRow row{.round = 1, .clients = 20, .elements_up = 40, .bits_up_published = 1280, .bits_up_entropy = 1093.25};
    row.bits_up = 1281;
    row.bits_down = 32000;
    row.error_norm_sq = 3.18e-4;
    row.zeta_sq = 0.25;
    return row;
  }

  [[nodiscard]] std::string rounds(TableFormat format, bool reproducible = false) const {
    std::ostringstream out;
    write_rounds(*store_, reproducible, format, out, OtherResults::left_out, damaged_);
    return out.str();
  }
  [[nodiscard]] std::string runs(TableFormat format, bool reproducible = false) const {
    std::ostringstream out;
    write_runs(*store_, reproducible, format, out, OtherResults::left_out, damaged_);
    return out.str();
  }

  fs::path folder_;
  std::unique_ptr<RunStore> store_;
  mutable std::vector<DamagedRun> damaged_;
};

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

constexpr const char* kRoundsHeader =
    "run,round,clients,elements_up,bits_up_published,bits_up_entropy,bits_up,bits_down,train_loss,f_gap,grad_norm_sq,error_norm_sq,"
    "compensated_norm_sq,compression_error_sq,test_accuracy,test_loss,simulated_s";

TEST_F(ExportTest, RoundsCsvByteForByte) {
  add_two_runs();
  EXPECT_EQ(
      rounds(TableFormat::csv),
      std::string(kRoundsHeader) +
          ",global_grad_norm_sq,density,virtual_drift,measured_kappa,measured_delta,measured_omega,zeta_sq,residual_age,refused,"
          "perplexity,hit_rate_10,ndcg_10,client_accuracy_mean,client_accuracy_p10,client_accuracy_p50,client_accuracy_p90,"
          "client_accuracy_worst,client_accuracy_deviation,update_dissimilarity,client_drift,gradient_dissimilarity,average_f_gap,"
          "cumulative_bits_up_published,cumulative_bits_up_entropy,cumulative_bits_up,cumulative_bits_down,compressor.up,axis.rounds\n"
          "ff01,0,0,0,,,0,0,0.6931471805599453,,,,,,,,,,,,,,,,,0,,,,,,,,,,,,,,0,0,0,0,\"top-1%, \"\"exact\"\"\",\n"
          "ff01,1,20,40,1280,1093.25,1281,32000,,,,0.000318,,,,,,,,,,,,0.25,,0,,,,,,,,,,,,,,1280,1093.25,1281,32000,"
          "\"top-1%, \"\"exact\"\"\",\n"
          "0a02,0,0,0,,,0,0,,,,,,,,,,,,,,,,,,0,,,,,,,,,,,,,,0,0,0,0,none,7\n");
}

// A round that sent nothing counts nothing; from the first round on that sent bits without an estimate the sums are not known.
TEST_F(ExportTest, CumulativeBitsEndWhereAnEstimateIsMissing) {
  std::vector<RoundRow> rows(5);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].round = r;
    rows[r].bits_up = r == 0 || r == 2 ? 0 : 10 * r;
    rows[r].bits_down = 1;
    if (r != 2 && r < 4) rows[r].bits_up_published = static_cast<double>(r);
  }
  store_->append(RunRecord{.run = "a1", .name = "gaps", .seed = 1, .status = RunStatus::done, .rounds = 4}, rows);
  const std::string table = rounds(TableFormat::csv);
  std::vector<std::string> ends;
  std::istringstream in(table);
  for (std::string line; std::getline(in, line);) {
    std::size_t at = line.size();
    for (int commas = 0; commas < 4; ++commas) at = line.rfind(',', at - 1);
    ends.push_back(line.substr(at + 1));
  }
  EXPECT_EQ(ends,
            (std::vector<std::string>{"cumulative_bits_up_published,cumulative_bits_up_entropy,cumulative_bits_up,cumulative_bits_down",
                                      "0,0,0,1", "1,,10,2", "1,,10,3", "4,,40,4", ",,80,5"}));
}

TEST_F(ExportTest, RunsCsvByteForByte) {
  add_two_runs();
  EXPECT_EQ(runs(TableFormat::csv),
            "run,name,seed,status,rounds,bits_up,bits_down,train_loss,f_gap,test_accuracy,total_error,zeta_sq,checksum,seconds,"
            "compressor.up,axis.rounds,split_hash,configuration\n"
            "ff01,plain,1,done,1,1280,32000,0.1,1e-09,,,,c0de,1.25,\"top-1%, \"\"exact\"\"\",,5a5a,"
            "\"{\"\"name\"\":\"\"plain\"\",\"\"results_version\"\":" +
                std::to_string(kLeastResultsVersion) +
                ",\"\"rounds\"\":1}\"\n"
                "0a02,plain,2,diverged,0,0,0,inf,,,,,,2.5,none,7,,\n");
}

TEST_F(ExportTest, RunsJsonByteForByte) {
  add_two_runs();
  EXPECT_EQ(runs(TableFormat::json),
            "[\n"
            "{\"run\":\"ff01\",\"name\":\"plain\",\"seed\":1,\"status\":\"done\",\"rounds\":1,\"bits_up\":1280,\"bits_down\":32000,"
            "\"train_loss\":0.1,\"f_gap\":1e-09,\"test_accuracy\":null,\"total_error\":null,\"zeta_sq\":null,\"checksum\":\"c0de\","
            "\"seconds\":1.25,\"compressor.up\":\"top-1%, \\\"exact\\\"\",\"axis.rounds\":null,\"split_hash\":\"5a5a\","
            "\"configuration\":{\"name\":\"plain\",\"results_version\":" +
                std::to_string(kLeastResultsVersion) +
                ",\"rounds\":1}},\n"
                "{\"run\":\"0a02\",\"name\":\"plain\",\"seed\":2,\"status\":\"diverged\",\"rounds\":0,\"bits_up\":0,\"bits_down\":0,"
                "\"train_loss\":1e999,\"f_gap\":null,\"test_accuracy\":null,\"total_error\":null,\"zeta_sq\":null,\"checksum\":\"\","
                "\"seconds\":2.5,\"compressor.up\":\"none\",\"axis.rounds\":\"7\",\"split_hash\":\"\",\"configuration\":null}\n"
                "]\n");
}

TEST_F(ExportTest, ReproducibleSortsByHashAndLeavesSecondsEmpty) {
  add_two_runs();
  const std::string table = runs(TableFormat::csv, true);
  EXPECT_LT(table.find("0a02,"), table.find("ff01,"));
  EXPECT_EQ(table.find("1.25"), std::string::npos);
  EXPECT_NE(table.find("c0de,,\"top"), std::string::npos);
  EXPECT_LT(rounds(TableFormat::csv, true).find("0a02,"), rounds(TableFormat::csv, true).find("ff01,"));
}

TEST_F(ExportTest, AnEmptyStoreGivesHeadersOnly) {
  EXPECT_EQ(rounds(TableFormat::csv).substr(0, std::strlen(kRoundsHeader)), kRoundsHeader);
  EXPECT_EQ(rounds(TableFormat::json), "[\n]\n");
  EXPECT_EQ(runs(TableFormat::csv).find('\n'), runs(TableFormat::csv).size() - 1);
}

TEST_F(ExportTest, ControlCharactersAndNewlines) {
  RunRecord run{.run = "a1", .name = "two\nlines\x01", .seed = 1, .status = RunStatus::done};
  store_->append(run, {});
  EXPECT_NE(runs(TableFormat::csv).find("a1,\"two\nlines\x01\",1"), std::string::npos);
  EXPECT_NE(runs(TableFormat::json).find("\"two\\nlines\\u0001\""), std::string::npos);
}

// A text that a spreadsheet would execute gets an apostrophe in front; removing it restores the text. Numbers stay numbers.
TEST_F(ExportTest, FormulasAreTexts) {
  const std::pair<std::string, std::string> cells[] = {{"=1+1", "'=1+1"},
                                                       {"@SUM(A1)", "'@SUM(A1)"},
                                                       {"+1+1", "'+1+1"},
                                                       {"-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"},
                                                       {"\t=1", "\"'\t=1\""},
                                                       {"\r=1", "\"'\r=1\""},
                                                       {"=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""},
                                                       {"'quoted", "''quoted"},
                                                       {"+-1", "'+-1"},
                                                       {"-inf", "'-inf"},
                                                       {"-0.5", "-0.5"},
                                                       {"+1e-3", "+1e-3"},
                                                       {"-1", "-1"},
                                                       {"top_k(k=1)", "top_k(k=1)"},
                                                       {"", ""}};
  for (const auto& [text, cell] : cells) EXPECT_EQ(csv_text(text), cell);
  RunRecord run{.run = "a1", .name = "=cmd|' /C calc'!A0", .seed = 1, .status = RunStatus::done};
  run.axes = {{"=axis", "-2"}};
  store_->append(run, {});
  EXPECT_NE(runs(TableFormat::csv).find("'=axis"), std::string::npos);
  EXPECT_NE(runs(TableFormat::csv).find("a1,'=cmd|' /C calc'!A0,1"), std::string::npos);
  EXPECT_NE(runs(TableFormat::csv).find(",-2,"), std::string::npos);
  EXPECT_NE(runs(TableFormat::json).find("\"=cmd|' /C calc'!A0\""), std::string::npos) << "JSON runs nothing";
}

TEST_F(ExportTest, FilesAppearUnderTheirNamesOnly) {
  add_two_runs();
  const fs::path target = folder_ / "tables";
  fs::create_directory(target);
  std::ofstream(target / "runs.csv") << "old";
  fs::create_symlink(target / "runs.csv", target / "link.csv");
  export_results(*store_, {.rounds = target / "rounds.json", .runs = target / "link.csv"}, damaged_);
  EXPECT_EQ(contents(target / "rounds.json"), rounds(TableFormat::json));
  EXPECT_EQ(contents(target / "runs.csv"), runs(TableFormat::csv));
  EXPECT_TRUE(fs::is_symlink(target / "link.csv"));
  EXPECT_EQ(files_in(target), 3u);
  export_results(*store_, {.rounds = "/dev/null", .runs = {}}, damaged_);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// As `--runs /dev/stdout` in a pipe: a link without a path behind it.
TEST_F(ExportTest, PipesAreWrittenDirectly) {
  add_two_runs();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), folder_ / "runs.csv");
  export_results(*store_, {.rounds = {}, .runs = folder_ / "runs.csv"}, damaged_);
  ::close(ends[1]);
  std::string text(1 << 16, '\0');
  const ssize_t count = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  ASSERT_GT(count, 0);
  EXPECT_EQ(text.substr(0, static_cast<std::size_t>(count)), runs(TableFormat::csv));
}

TEST_F(ExportTest, BadOptionsAreConfigErrors) {
  EXPECT_THROW(validate({}), ConfigError);
  EXPECT_THROW(validate({.rounds = "rounds.xls", .runs = {}}), ConfigError);
  EXPECT_NO_THROW(validate({.rounds = {}, .runs = "a.json"}));
}

TEST_F(ExportTest, FailuresNameThePathAndLeaveNothing) {
  add_two_runs();
  const fs::path good = folder_ / "rounds.csv", bad = folder_ / "missing" / "runs.csv";
  try {
    export_results(*store_, {.rounds = good, .runs = bad}, damaged_);
    FAIL() << "a missing folder was accepted";
  } catch (const StoreError& error) {
    EXPECT_NE(std::string(error.what()).find(bad.string()), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
  EXPECT_EQ(files_in(folder_), 1u);  // the store's folder
}

TEST_F(ExportTest, AFullDiskKeepsTheOldFile) {
  const fs::path disk = folder_ / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  std::ofstream(disk / "rounds.csv") << "old";
  std::vector<RoundRow> rows(5000, second_row());
  for (std::size_t r = 0; r < rows.size(); ++r) rows[r].round = r;
  store_->append(RunRecord{.run = "a1", .name = "long", .seed = 1, .status = RunStatus::done, .rounds = 4999}, rows);
  EXPECT_THROW(export_results(*store_, {.rounds = disk / "rounds.csv", .runs = {}}, damaged_), StoreError);
  EXPECT_EQ(contents(disk / "rounds.csv"), "old");
  EXPECT_EQ(files_in(disk), 1u);
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(ExportTest, ExplainPrintsTheScenarioAfterComments) {
  add_two_runs();
  std::ostringstream out;
  explain(*store_, "ff", out);
  const std::string text = out.str();
  EXPECT_TRUE(text.starts_with("# run ff01 of plain\n"));
  EXPECT_TRUE(text.ends_with("\n\n" + kScenario));
  EXPECT_NE(text.find("#   L   1.5722182430111165\n#   mu  not computed\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#   split_hash       5a5a\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#   compressor.up  top-1%, \"exact\"\n"), std::string::npos) << text;
  std::istringstream head(text.substr(0, text.find("\n\n")));
  for (std::string line; std::getline(head, line);) EXPECT_TRUE(line.starts_with("#")) << line;
  EXPECT_THROW(explain(*store_, "zz", out), StoreError);
}

}  // namespace
}  // namespace fl
