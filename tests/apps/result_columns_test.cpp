// Compares docs/results.md with the program's output: the page lists every column and key, and no other. Compares cells of the
// configuration, labels and cumulative bits with independently computed values.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/file/measure_set.hpp"
#include "study/results/export.hpp"
#include "study/results/export_contrasts.hpp"
#include "tests/support/study.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::HasSubstr;
using Json = nlohmann::json;
using CsvLine = std::vector<std::string>;

struct DocumentedColumn {
  std::string name, unit, definition, empty;
};

// The cells of a line "| a | b |", without blanks.
CsvLine cells_of_page_line(const std::string& line) {
  CsvLine cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

// The lines of the first table below a heading.
std::vector<CsvLine> page_table(const std::string& heading) {
  std::ifstream page(std::string(FL_SOURCE_DIR) + "/docs/results.md");
  std::vector<CsvLine> lines;
  bool is_below = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) is_below = line == "## " + heading;
    if (is_below && line.starts_with("|") && !line.starts_with("|--")) lines.push_back(cells_of_page_line(line));
  }
  if (!lines.empty()) lines.erase(lines.begin());  // the header
  return lines;
}

std::string without_ticks(const std::string& text) {
  return text.size() > 2 && text.front() == '`' && text.back() == '`' ? text.substr(1, text.size() - 2) : text;
}

std::vector<DocumentedColumn> documented(const std::string& heading) {
  std::vector<DocumentedColumn> columns;
  for (const CsvLine& line : page_table(heading)) {
    EXPECT_EQ(line.size(), 4u) << line.front();
    columns.push_back({without_ticks(line.at(0)), line.at(1), line.at(2), line.at(3)});
    EXPECT_FALSE(columns.back().definition.empty()) << columns.back().name;
    EXPECT_FALSE(columns.back().empty.empty()) << columns.back().name << ": the page has to say when the column is empty";
  }
  return columns;
}

bool is_fixed(const std::string& name) { return name != "AXIS" && name != "KEY" && name != "MEASURE"; }

// The rows of a CSV file as RFC 4180 has them; the first one is the header.
std::vector<CsvLine> csv_lines(const std::string& text) {
  std::vector<CsvLine> lines(1, CsvLine(1));
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      lines.back().back() += text[++i];
    } else if (c == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && c == ',') {
      lines.back().emplace_back();
    } else if (!is_quoted && c == '\n') {
      lines.emplace_back(1);
    } else {
      lines.back().back() += c;
    }
  }
  lines.pop_back();
  return lines;
}

using CsvRow = std::map<std::string, std::string>;

std::vector<CsvRow> csv_rows(const std::vector<CsvLine>& lines) {
  std::vector<CsvRow> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].size(), lines[0].size());
    CsvRow& row = rows.emplace_back();
    for (std::size_t c = 0; c < lines[0].size(); ++c) row[lines[0][c]] = lines[i][c];
  }
  return rows;
}

// Every value of a configuration by its path.
void collect_paths(const Json& value, const std::string& path, std::map<std::string, Json>& found) {
  const auto is_object = [](const Json& item) { return item.is_object(); };
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) collect_paths(member, path.empty() ? key : path + "." + key, found);
  } else if (value.is_array() && std::any_of(value.begin(), value.end(), is_object)) {
    for (std::size_t i = 0; i < value.size(); ++i) collect_paths(value[i], path + "." + std::to_string(i + 1), found);
  } else {
    found[path] = value;
  }
}

constexpr const char* kPlain =
    "name = 'plain'\nrounds = 6\nprecision = 'float64'\n[data]\nname = 'mushrooms'\nrows = 200\ntest_fraction = 0.2\n[partition]\nclients "
    "= 4\n"
    "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[feedback.up]\nkind = 'ef14'\n[compressor.up]\nkind = 'top_k'\nk = 5\n"
    "[evaluate]\nevery = 2\naverage = true\n";
// Two axes, one of them of tables; participation, a compressed way down, two seeds.
constexpr const char* kSwept =
    "name = 'swept'\nrounds = 5\n[data]\nname = 'mushrooms'\nrows = 200\n[partition]\nkind = 'dirichlet_client'\nclients = 6\n"
    "[participation]\nkind = 'uniform'\nclients = 3\n[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[compressor.down]\nkind = 'top_k'\n"
    "k = 20\n[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'partition.alpha'\nvalues = [0.1, "
    "10.0]\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label = 'top, 5', kind = 'top_k', k = 5}, "
    "{label = 'hard', kind = 'hard_threshold', threshold = 0.01}]\n";
// Axes of numbers; one of them is a column already.
constexpr const char* kLengths =
    "name = 'lengths'\n[data]\nname = 'mushrooms'\nrows = 120\n[partition]\nclients = 3\n[model]\nkind = 'logistic_regression'\n"
    "[evaluate]\noptimum = false\n[sweep]\n[[sweep.axis]]\nkey = 'rounds'\nvalues = [2, 3]\n[[sweep.axis]]\nkey = "
    "'local.learning_rate'\nvalues = [0.5, 1.0]\n";
constexpr const char* kNetwork =
    "name = 'network'\nrounds = 3\n[data]\nname = 'mushrooms'\nrows = 200\ntest_fraction = 0.2\n[partition]\nclients = 4\n[model]\nkind = "
    "'mlp'\n"
    "hidden = [4]\n[local]\nkind = 'sgd'\nbatch = 10\nsteps = 2\n[evaluate]\nevery = 1\ntrain_loss = false\noptimum = false\nclients_every "
    "= "
    "1\nupdates_every = 1\n";

class ResultColumnsTest : public test::BinaryTest {
 protected:
  struct Tables {
    std::vector<CsvLine> runs, rounds;
  };
  Tables export_of(const std::string& text, const std::string& command) const {
    write("study.toml", text);
    const Outcome outcome = fedbits({command, "study.toml", "--out", "out"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(fedbits({"export", "out", "--runs", "runs.csv", "--rounds", "rounds.csv", "--reproducible"}).code, 0);
    return {csv_lines(read("runs.csv")), csv_lines(read("rounds.csv"))};
  }
};

// The columns that are written but for `dynamic` are those of the page, in its order; "never" and "always" hold.
void expect_as_documented(const std::vector<CsvLine>& table, const std::string& page, const std::set<std::string>& dynamic,
                          const std::set<std::string>& absent) {
  std::vector<std::string> expected, written;
  for (const DocumentedColumn& column : documented(page))
    if (is_fixed(column.name) && !absent.contains(column.name)) expected.push_back(column.name);
  std::set<std::string> met;
  for (const std::string& name : table.front()) {
    if (!dynamic.contains(name)) written.push_back(name);
    EXPECT_TRUE(met.insert(name).second) << name << " stands twice";
  }
  EXPECT_EQ(written, expected) << page;
  for (const std::string& name : dynamic) EXPECT_TRUE(met.contains(name)) << name;
  for (const CsvRow& row : csv_rows(table))
    for (const DocumentedColumn& column : documented(page)) {
      if (!row.contains(column.name)) continue;
      if (column.empty == "never" || column.empty == "always") {
        EXPECT_EQ(row.at(column.name).empty(), column.empty == "always") << column.name;
      }
    }
}

// The columns that a study has besides those that every study has, against the JSON column.
std::set<std::string> expected_keys(const std::vector<CsvRow>& runs, const std::set<std::string>& left_out) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> count;
  for (const CsvRow& run : runs) {
    std::map<std::string, Json> paths;
    collect_paths(Json::parse(run.at("configuration")), "", paths);
    for (const auto& [path, value] : paths) {
      values[path].insert(value.dump());
      ++count[path];
    }
  }
  std::set<std::string> keys;
  for (const auto& [path, all] : values)
    if ((all.size() > 1 || count[path] < runs.size()) && !left_out.contains(path)) keys.insert(path);
  return keys;
}

void expect_cells_of_keys(const std::vector<CsvRow>& runs, const std::map<std::string, std::string>& columns) {
  for (const CsvRow& run : runs) {
    std::map<std::string, Json> paths;
    collect_paths(Json::parse(run.at("configuration")), "", paths);
    for (const auto& [key, column] : columns) {
      const std::string& cell = run.at(column);
      if (!paths.contains(key)) {
        EXPECT_EQ(cell, "") << column;
      } else if (paths[key].is_string()) {
        EXPECT_EQ(cell, paths[key].get<std::string>()) << column;
      } else {
        EXPECT_EQ(Json::parse(cell), paths[key]) << column;
      }
    }
  }
}

// Each row has the bits of its run so far; the last one those of runs.csv.
void expect_cumulative_bits(const std::vector<CsvRow>& runs, const std::vector<CsvRow>& rounds) {
  std::map<std::string, double> sums;
  for (const CsvRow& row : rounds)
    for (const char* column : {"bits_up", "bits_down", "bits_up_published", "bits_up_entropy"}) {
      ASSERT_NE(row.at(column), "");
      double& sum = sums[row.at("run") + column];
      sum += std::stod(row.at(column));
      EXPECT_EQ(std::stod(row.at(std::string("cumulative_") + column)), sum) << column;
    }
  for (const CsvRow& run : runs) {
    EXPECT_EQ(std::stod(run.at("bits_up")), sums[run.at("run") + "bits_up"]);
    EXPECT_EQ(std::stod(run.at("bits_down")), sums[run.at("run") + "bits_down"]);
  }
}

const std::set<std::string> kAbsent = {"plugins", "results_version"};

// The page says of each column what its measure says in the code.
TEST_F(ResultColumnsTest, AreDescribedAsTheirMeasuresSay) {
  std::size_t compared = 0;
  for (const DocumentedColumn& column : documented("rounds.csv")) {
    const std::size_t place = place_of(standard_columns(), column.name);
    if (place == standard_columns().size()) continue;
    const MeasureColumn& said = standard_columns()[place];
    EXPECT_EQ(column.unit, said.unit) << column.name;
    EXPECT_EQ(column.definition, said.definition) << column.name;
    EXPECT_EQ(column.empty, said.empty) << column.name;
    ++compared;
  }
  EXPECT_EQ(compared, standard_columns().size());
}

TEST_F(ResultColumnsTest, OfASingleRun) {
  const Tables tables = export_of(kPlain, "run");
  // `seconds` is empty in a reproducible export alone, as the page says.
  expect_as_documented(tables.runs, "runs.csv", {}, kAbsent);
  expect_as_documented(tables.rounds, "rounds.csv", {}, {});
  expect_cumulative_bits(csv_rows(tables.runs), csv_rows(tables.rounds));
  EXPECT_NE(csv_rows(tables.rounds).back().at("f_gap"), "");
  EXPECT_NE(csv_rows(tables.rounds).back().at("average_f_gap"), "");
}

TEST_F(ResultColumnsTest, OfASweepWithParticipationAndACompressedWayDown) {
  const Tables tables = export_of(kSwept, "sweep");
  const std::vector<CsvRow> runs = csv_rows(tables.runs), rounds = csv_rows(tables.rounds);
  ASSERT_EQ(runs.size(), 8u);
  const std::set<std::string> keys = expected_keys(runs, {"seed", "partition.alpha"});
  EXPECT_TRUE(keys.contains("compressor.up.kind"));
  EXPECT_TRUE(keys.contains("compressor.up.threshold"));
  std::map<std::string, std::string> columns;
  for (const std::string& key : keys) columns[key] = key;
  std::set<std::string> dynamic = {"partition.alpha", "compressor.up"};
  for (const auto& [key, column] : columns) dynamic.insert(column);
  expect_as_documented(tables.runs, "runs.csv", dynamic, kAbsent);
  expect_as_documented(tables.rounds, "rounds.csv", {"partition.alpha", "compressor.up"}, {});
  expect_cells_of_keys(runs, columns);
  expect_cumulative_bits(runs, rounds);
  std::map<std::string, CsvRow> by_run;
  for (const CsvRow& run : runs) by_run[run.at("run")] = run;
  for (const CsvRow& row : rounds)
    for (const char* axis : {"partition.alpha", "compressor.up"}) EXPECT_EQ(row.at(axis), by_run.at(row.at("run")).at(axis));
}

// Runs that are not on the axis of the others: its values stand beside its labels.
TEST_F(ResultColumnsTest, OfTwoStudiesInOneStore) {
  (void)export_of(kSwept, "sweep");
  write("study.toml", std::string(kSwept).substr(0, std::string(kSwept).find("[sweep]")));
  ASSERT_EQ(fedbits({"run", "study.toml", "--out", "out", "--set", "partition.alpha=3", "--set", "rounds=4"}).code, 0);
  ASSERT_EQ(fedbits({"export", "out", "--runs", "runs.csv", "--reproducible"}).code, 0);
  const std::vector<CsvRow> runs = csv_rows(csv_lines(read("runs.csv")));
  ASSERT_EQ(runs.size(), 9u);
  std::map<std::string, std::string> columns;
  for (const std::string& key : expected_keys(runs, {"seed"}))
    columns[key] = key == "partition.alpha" || key == "rounds" ? "configuration." + key : key;
  EXPECT_EQ(columns.count("rounds"), 1u);
  expect_cells_of_keys(runs, columns);
  EXPECT_EQ(std::count_if(runs.begin(), runs.end(), [](const CsvRow& run) { return run.at("configuration.rounds") == "4"; }), 1);
  EXPECT_EQ(std::count_if(runs.begin(), runs.end(), [](const CsvRow& run) { return run.at("partition.alpha").empty(); }), 1);
}

// `rounds` is a column of its own meaning; an axis whose labels are its values has one column.
TEST_F(ResultColumnsTest, OfAxesThatAreColumnsAlready) {
  const Tables tables = export_of(kLengths, "sweep");
  const std::vector<CsvRow> runs = csv_rows(tables.runs);
  ASSERT_EQ(runs.size(), 4u);
  expect_as_documented(tables.runs, "runs.csv", {"axis.rounds", "local.learning_rate"}, kAbsent);
  expect_as_documented(tables.rounds, "rounds.csv", {"axis.rounds", "local.learning_rate"}, {});
  for (const CsvRow& run : runs) {
    EXPECT_EQ(run.at("axis.rounds"), run.at("rounds"));
    EXPECT_EQ(run.at("f_gap"), "");
  }
}

TEST_F(ResultColumnsTest, OfANetwork) {
  const Tables tables = export_of(kNetwork, "run");
  expect_as_documented(tables.runs, "runs.csv", {}, kAbsent);
  expect_as_documented(tables.rounds, "rounds.csv", {}, {});
  const CsvRow last = csv_rows(tables.rounds).back();
  for (const char* column : {"client_accuracy_mean", "client_drift", "test_loss"}) EXPECT_NE(last.at(column), "") << column;
  EXPECT_EQ(last.at("train_loss"), "");
}

// Columns that few exports have: of plug-ins, and of results of other versions.
TEST_F(ResultColumnsTest, OfPluginsAndOtherVersions) {
  RunStore store = RunStore::open(folder_ / "out", RunStore::Mode::create);
  RunRecord run{.run = "a1", .name = "plain", .seed = 1, .status = RunStatus::done};
  run.checksum = "c0de";
  run.plugins = {{"own.so", "5a"}};
  store.append(run, {RoundRow{}});
  std::ostringstream out;
  std::vector<DamagedRun> damaged;
  write_runs(store, true, TableFormat::csv, out, OtherResults::written, damaged);
  expect_as_documented(csv_lines(out.str()), "runs.csv", {}, {});
  EXPECT_EQ(csv_rows(csv_lines(out.str())).at(0).at("configuration"), "") << "its scenario is not known";
}

// In JSON the configuration is an object, and values keep their types.
TEST_F(ResultColumnsTest, JsonHasTheSameColumns) {
  const Tables tables = export_of(kSwept, "sweep");
  ASSERT_EQ(fedbits({"export", "out", "--runs", "runs.json", "--rounds", "rounds.json", "--reproducible"}).code, 0);
  const std::vector<CsvRow> runs = csv_rows(tables.runs);
  const Json all = Json::parse(read("runs.json"));
  ASSERT_EQ(all.size(), runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::set<std::string> names(tables.runs[0].begin(), tables.runs[0].end());
    for (const auto& [name, _] : all[i].items()) EXPECT_EQ(names.erase(name), 1u) << name;
    EXPECT_TRUE(names.empty());
    EXPECT_EQ(all[i]["configuration"], Json::parse(runs[i].at("configuration")));
    EXPECT_TRUE(all[i]["compressor.up.kind"].is_string());
    EXPECT_TRUE(all[i]["compressor.up.k"].is_null() || all[i]["compressor.up.k"].is_number_integer());
    EXPECT_EQ(all[i]["compressor.up.threshold"].is_null(), all[i]["compressor.up"] != "hard");
  }
  EXPECT_EQ(Json::parse(read("rounds.json")).size(), tables.rounds.size() - 1);
}

// ---- the log of events -----------------------------------------------------------------------------------------------------------

// The keys of an event as the page has them; "every column of ..." stands for those of a table up to one.
std::set<std::string> documented_keys(const std::string& event) {
  std::set<std::string> keys = {"event"};
  const auto add_until = [&keys](const std::string& page, const std::string& last) {
    for (const DocumentedColumn& column : documented(page)) {
      keys.insert(column.name);
      if (column.name == last) return;
    }
    FAIL() << page << " has no column " << last;
  };
  for (const CsvLine& line : page_table("The log of events")) {
    if (without_ticks(line.at(0)) != event) continue;
    if (line.at(1) == "every column of rounds.csv up to `average_f_gap`")
      add_until("rounds.csv", "average_f_gap");
    else if (line.at(1) == "every column of runs.csv up to `seconds`")
      add_until("runs.csv", "seconds");
    else if (is_fixed(without_ticks(line.at(1))))
      keys.insert(without_ticks(line.at(1)));
  }
  return keys;
}

// Parses every line and compares its keys with the page. Returns the lines by event.
std::map<std::string, std::vector<Json>> events_of(const std::string& log) {
  std::map<std::string, std::vector<Json>> events;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    const Json object = Json::parse(line);
    const std::string event = object.at("event");
    std::set<std::string> keys;
    for (const auto& [key, _] : object.items()) keys.insert(key);
    EXPECT_EQ(keys, documented_keys(event)) << line;
    events[event].push_back(object);
  }
  return events;
}

TEST_F(ResultColumnsTest, TheLogOfASweep) {
  write("study.toml", kSwept);
  const Outcome outcome = fedbits({"sweep", "study.toml", "--out", "out", "--jobs", "2", "--log-json", "log.jsonl"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto events = events_of(read("log.jsonl"));
  EXPECT_EQ(events["started"].size(), 8u);
  EXPECT_EQ(events["finished"].size(), 8u);
  EXPECT_GE(events["progress"].size(), 8u) << "at least the start of each run";
  EXPECT_EQ(events["refused"].size(), 0u);
  const RunStore store = RunStore::open(folder_ / "out", RunStore::Mode::read);
  std::map<std::string, std::set<std::uint64_t>> rounds;
  for (const Json& at : events["progress"]) {
    const RoundRow row = store.rows(at.at("run")).at(at.at("round").get<std::size_t>());
    EXPECT_EQ(at.at("bits_up"), row.bits_up);
    EXPECT_EQ(at.at("train_loss"), row.train_loss);
    EXPECT_TRUE(rounds[at.at("run")].insert(row.round).second) << "a round is logged once";
  }
  for (const Json& begun : events["started"]) {
    const RunRecord run = store.record(begun.at("run"));
    EXPECT_EQ(begun.at("rounds"), 5);
    EXPECT_EQ(begun.at("seed"), run.seed);
    ASSERT_EQ(begun.at("axes").size(), run.axes.size());
    for (const AxisLabel& axis : run.axes) EXPECT_EQ(begun.at("axes").at(axis.key), axis.label);
  }
  for (const Json& ended : events["finished"]) {
    EXPECT_EQ(ended.at("status"), "done");
    EXPECT_EQ(ended.at("stored"), false);
    EXPECT_EQ(ended.at("checksum"), store.record(ended.at("run")).checksum);
  }
  ASSERT_EQ(fedbits({"sweep", "study.toml", "--out", "out", "--log-json", "log.jsonl"}).code, 0);
  events = events_of(read("log.jsonl"));
  EXPECT_EQ(events.size(), 1u);
  ASSERT_EQ(events["finished"].size(), 8u);
  for (const Json& ended : events["finished"]) EXPECT_EQ(ended.at("stored"), true);
}

// Reports of a run come ten times a second and name the round that was measured last, which is seldom a new one here.
TEST_F(ResultColumnsTest, TheLogOfASweepHasNoLineTwice) {
  write("study.toml", kPlain);
  const Outcome outcome = fedbits({"sweep", "study.toml", "--out", "out", "--log-json", "log.jsonl", "--set", "rounds=20000", "--set",
                                   "evaluate.every=100000", "--set", "evaluate.average=false"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto events = events_of(read("log.jsonl"));
  EXPECT_LE(events["progress"].size(), 2u) << "the start and the end alone were measured";
  EXPECT_EQ(events["progress"].at(0).at("round"), 0);
}

TEST_F(ResultColumnsTest, TheLogOfANetworkWithoutATrainingLoss) {
  write("study.toml", kNetwork);
  ASSERT_EQ(fedbits({"run", "study.toml", "--out", "out", "--log-json", "log.jsonl"}).code, 0);
  auto events = events_of(read("log.jsonl"));
  EXPECT_EQ(events["started"].size(), 1u);
  EXPECT_EQ(events["progress"].size(), 4u);
  EXPECT_EQ(events["finished"].size(), 1u);
}

TEST_F(ResultColumnsTest, TheLogNamesFailedRuns) {
  write("study.toml", std::string(kSwept) + "[local]\nkind = 'gradient'\nlearning_rate = 1e300\n");
  const Outcome outcome = fedbits({"sweep", "study.toml", "--out", "out", "--log-json", "log.jsonl"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  auto events = events_of(read("log.jsonl"));
  ASSERT_EQ(events["finished"].size(), 8u);
  for (const Json& ended : events["finished"]) {
    EXPECT_NE(ended.at("status"), "done");
    EXPECT_NE(ended.at("message"), "");
  }
}

TEST_F(ResultColumnsTest, TheLogSaysWhyAStudyIsRefused) {
  write("wrong.toml", std::string(kPlain) + "evry = 3\nclients_evry = 2\n");
  for (const char* command : {"run", "sweep"}) {
    const Outcome outcome = fedbits({command, "wrong.toml", "--out", "out", "--log-json", "log.jsonl"});
    EXPECT_EQ(outcome.code, 2);
    auto events = events_of(read("log.jsonl"));
    EXPECT_EQ(events.size(), 1u);
    ASSERT_EQ(events["refused"].size(), 2u) << read("log.jsonl");
    for (const Json& refused : events["refused"])
      EXPECT_THAT(outcome.err, HasSubstr(refused.at("where").get<std::string>() + ": " + refused.at("message").get<std::string>()));
  }
  EXPECT_FALSE(exists("out"));
  const Outcome listed = fedbits({"sweep", "wrong.toml", "--list", "--log-json", "log.jsonl"});
  EXPECT_EQ(listed.code, 2) << "nothing runs, so there is nothing to log";
}

TEST_F(ResultColumnsTest, ALogThatCannotBeWrittenStopsASweep) {
  write("study.toml", kSwept);
  const Outcome outcome = fedbits({"sweep", "study.toml", "--out", "out", "--log-json", "no/such/folder/log.jsonl"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write no/such/folder/log.jsonl: No such file or directory"));
  EXPECT_FALSE(exists("out"));
}

template <class Columns>
void expect_documented(const std::string& heading, const Columns& columns) {
  std::vector<std::string> names;
  for (const DocumentedColumn& column : documented(heading))
    if (is_fixed(column.name)) names.push_back(column.name);
  EXPECT_EQ(names, std::vector<std::string>(columns.begin(), columns.end()));
}

TEST(ResultColumns, ThePageListsThoseOfContrasts) {
  expect_documented("differences.csv", kDifferenceColumns);
  expect_documented("slopes.csv", kSlopeColumns);
}

}  // namespace
}  // namespace fl
