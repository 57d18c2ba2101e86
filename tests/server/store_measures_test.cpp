// Tests columns of measures in a store: they are read back unchanged for each run, and damaged bytes are detected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "scenarios/results/sqlite.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StoreMeasuresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "store_measures_test_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  [[nodiscard]] RunStore open(RunStore::Mode mode = RunStore::Mode::create) const { return RunStore::open(folder_, mode); }
  [[nodiscard]] std::uint64_t count(const std::string& sql) const {
    sqlite::Database database(folder_ / RunStore::kFileName, sqlite::OpenMode::existing);
    return database.integer(sql);
  }
  void change(const std::string& sql) const {
    sqlite::Database database(folder_ / RunStore::kFileName, sqlite::OpenMode::existing);
    database.execute(sql);
  }

  fs::path folder_;
};

// A run whose rows have `columns` values each: round r, column c: 100 r + c, every third one not measured.
StoredRun run_with(const std::string& hash, const std::vector<MeasureColumn>& columns, std::uint64_t rounds = 3) {
  StoredRun run{.record = {.run = hash, .name = "measured", .seed = 1, .status = RunStatus::done, .rounds = rounds}, .rows = {}};
  run.record.columns = columns;
  run.rows.resize(rounds + 1);
  for (std::uint64_t r = 0; r <= rounds; ++r) {
    run.rows[r].round = r;
    run.rows[r].train_loss = 1.0 / static_cast<double>(r + 1);
    for (std::size_t c = 0; c < columns.size(); ++c)
      run.rows[r].more.push_back((r + c) % 3 == 2 ? kNotMeasured : 100.0 * static_cast<double>(r) + static_cast<double>(c));
  }
  return run;
}

std::vector<MeasureColumn> two_columns() {
  return {{.name = "alpha",
           .unit = "µ, \"quoted\"",
           .definition = "a definition; with 'quotes'",
           .empty = "never",
           .title = "α",
           .type = MeasureColumn::Type::count,
           .better = MeasureColumn::Better::higher,
           .shown = MeasureColumn::Shown::share,
           .is_compared = false},
          {.name = "beta", .definition = "another one"}};
}

void expect_same_run(const RunStore& store, const StoredRun& expected) {
  const StoredRun found = store.load(expected.record.run);
  EXPECT_EQ(found.record.columns, expected.record.columns);
  ASSERT_EQ(found.rows.size(), expected.rows.size());
  for (std::size_t r = 0; r < found.rows.size(); ++r) {
    ASSERT_EQ(found.rows[r].more.size(), expected.rows[r].more.size());
    EXPECT_EQ(found.rows[r].train_loss, expected.rows[r].train_loss);
    for (std::size_t c = 0; c < found.rows[r].more.size(); ++c) {
      const double a = found.rows[r].more[c], b = expected.rows[r].more[c];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << "round " << r << " column " << c << ": " << a << ", " << b;
    }
  }
}

std::string append_error(RunStore& store, const StoredRun& run) {
  try {
    store.append(run.record, run.rows);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(StoreMeasuresTest, RunsWithDifferentMeasuresLieInOneStore) {
  RunStore store = open();
  const StoredRun plain = run_with("a0", {});
  store.append(plain.record, plain.rows);
  EXPECT_EQ(count("SELECT count(*) FROM sqlite_master WHERE name LIKE 'measure%'"), 0u)
      << "a store without measures is what it was before there were any";
  StoredRun two = run_with("b1", two_columns());
  two.rows[1].more[0] = std::numeric_limits<double>::infinity();
  two.rows[2].more[1] = -5e-324;
  const StoredRun one = run_with("c2", {{.name = "beta", .unit = "s", .definition = "of another run"}}, 7);
  store.append(two.record, two.rows);
  store.append(one.record, one.rows);
  for (const StoredRun& run : {plain, two, one}) expect_same_run(store, run);
  EXPECT_EQ(open(RunStore::Mode::read).list().size(), 3u);
  EXPECT_TRUE(store.structural_damage().empty());
}

TEST_F(StoreMeasuresTest, ARunThatIsReplacedLeavesNothingBehind) {
  RunStore store = open();
  const StoredRun two = run_with("b1", two_columns()), one = run_with("b1", {{.name = "gamma", .definition = "a third one"}}, 2),
                  none = run_with("b1", {});
  store.append(two.record, two.rows);
  store.append(one.record, one.rows);
  expect_same_run(store, one);
  EXPECT_EQ(count("SELECT count(*) FROM measure_columns"), 1u);
  store.append(none.record, none.rows);
  expect_same_run(store, none);
  EXPECT_EQ(count("SELECT (SELECT count(*) FROM measure_columns)+(SELECT count(*) FROM measure_values)"), 0u);
}

// The checksums detect any damage: a changed value or text, a missing or added row.
TEST_F(StoreMeasuresTest, DamageOfColumnsAndValuesIsFound) {
  for (const char* sql :
       {"UPDATE measure_values SET value=value+1 WHERE value=100", "DELETE FROM measure_values WHERE value=100",
        "INSERT INTO measure_values VALUES((SELECT max(id) FROM measure_values)+1,0,5)",
        "UPDATE measure_columns SET unit='h' WHERE position=1", "INSERT INTO measure_values SELECT max(id),7,5 FROM measure_values",
        "UPDATE measure_columns SET definition='else' WHERE position=0", "DELETE FROM measure_columns WHERE position=1",
        "DELETE FROM measure_columns", "DELETE FROM measure_values", "UPDATE measure_columns SET name='alpha' WHERE position=1",
        "UPDATE measure_columns SET name='train_loss' WHERE position=1", "UPDATE measure_columns SET shown='loudly'",
        "UPDATE measure_columns SET compared=1", "UPDATE measure_columns SET position=position+2"}) {
    RunStore store = open();
    const StoredRun run = run_with("b1", two_columns()), other = run_with("c2", {});
    store.append(run.record, run.rows);
    store.append(other.record, other.rows);
    change(sql);
    const RunStore reader = open(RunStore::Mode::read);
    EXPECT_THROW((void)reader.load("b1"), StoreError) << sql;
    EXPECT_TRUE(reader.damage_of("b1").has_value()) << sql;
    expect_same_run(reader, other);
    fs::remove(folder_ / RunStore::kFileName);
  }
}

TEST_F(StoreMeasuresTest, ATableThatIsNotOursIsNoStore) {
  {
    RunStore store = open();
    const StoredRun run = run_with("b1", two_columns());
    store.append(run.record, run.rows);
  }
  change("DROP TABLE measure_values");
  try {
    (void)open(RunStore::Mode::read).load("b1");
    ADD_FAILURE() << "a store without the table of values was read";
  } catch (const StoreError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'measure_values' is not as fedbits made it"));
  }
}

TEST_F(StoreMeasuresTest, WhatCannotBeReadBackIsNotWritten) {
  RunStore store = open();
  StoredRun short_of_a_value = run_with("b1", two_columns());
  short_of_a_value.rows[2].more.pop_back();
  EXPECT_THAT(append_error(store, short_of_a_value), HasSubstr("round 2 has 1 values of measures where the run has 2 columns for them"));
  EXPECT_THAT(append_error(store, run_with("b1", {{.name = "twice", .definition = "d"}, {.name = "twice", .definition = "d"}})),
              HasSubstr("column \"twice\" stands twice"));
  EXPECT_THAT(append_error(store, run_with("b1", {{.name = "train_loss", .definition = "d"}})),
              HasSubstr("column \"train_loss\" has the name of a column that every run has"));
  EXPECT_THAT(append_error(store, run_with("b1", {{.name = "a b", .definition = "d"}})), HasSubstr("column \"a b\" has a name with other"));
  std::vector<MeasureColumn> many;
  for (std::size_t c = 0; c <= kMostMeasureColumns; ++c) many.push_back({.name = "c" + std::to_string(c), .definition = "d"});
  EXPECT_THAT(append_error(store, run_with("b1", many)), HasSubstr("a run may have 256"));
  EXPECT_FALSE(store.holds("b1"));
  many.pop_back();
  const StoredRun most = run_with("b1", many);
  store.append(most.record, most.rows);
  expect_same_run(store, most);
}

// A worker hands its run to the process that stores it.
TEST_F(StoreMeasuresTest, ARunGoesThroughAnArchive) {
  StoredRun run = run_with("b1", two_columns());
  Archive out;
  persist(out, run.record, run.rows);
  Archive in(out.bytes());
  StoredRun back;
  persist(in, back.record, back.rows);
  in.finish();
  EXPECT_EQ(back.record.columns, run.record.columns);
  ASSERT_EQ(back.rows.size(), run.rows.size());
  for (std::size_t r = 0; r < back.rows.size(); ++r) EXPECT_TRUE(same_bits(back.rows[r], run.rows[r])) << r;
  Archive cut(std::span(out.bytes()).first(out.bytes().size() - 8));
  EXPECT_THROW(persist(cut, back.record, back.rows), ArchiveError);
}

}  // namespace
}  // namespace fl
