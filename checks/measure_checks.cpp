// The requirements on every measure, in small runs: its columns fit into a table, its values depend on the run alone, and the run does not
// depend on them.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "checks/check.hpp"
#include "fl_core/config/error.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl::checks {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kStopRound = 4;  // round after which a run is interrupted

// A folder that exists as long as this object, with a file of ratings for measures of recommendations.
class RunFolder {
 public:
  RunFolder() {
    std::string name = (fs::temp_directory_path() / "fedbits_check_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("cannot make a folder in " + fs::temp_directory_path().string());
    path_ = name;
    std::ofstream ratings(path_ / "u.data");
    for (int user = 1; user <= 6; ++user)
      for (int item = 0; item < 12; ++item) ratings << user << '\t' << (7 * user + 5 * item) % 40 << "\t1\t" << item << '\n';
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct SmallRun {
  const char* name;
  const char* text;
};
// The small runs: classes with a test set and error feedback; quadratics without either, with sampled clients; the same in simulated
// time; ratings.
constexpr SmallRun kSmallRuns[] = {
    {"mushrooms",
     "data = { name = 'mushrooms', rows = 120, test_fraction = 0.2 }\nmodel = { kind = 'logistic_regression', l2 = 0.01 }\n"
     "partition = { kind = 'shuffled', clients = 4 }\ncompressor.up = { kind = 'top_k', k = 5 }\nfeedback.up = { kind = 'ef14' }\n"
     "evaluate = { every = 2, average = true, clients_every = 2, updates_every = 2 }\n"},
    {"quadratics",
     "data = { kind = 'quadratics', clients = 5 }\nmodel = { kind = 'quadratic' }\npartition = { kind = 'natural', clients = 5 }\n"
     "participation = { kind = 'poisson', p = 0.4 }\nevaluate = { every = 2, updates_every = 2 }\n"},
    {"quadratics in simulated time",
     "data = { kind = 'quadratics', clients = 5 }\nmodel = { kind = 'quadratic' }\npartition = { kind = 'natural', clients = 5 }\n"
     "network = { kind = 'constant', down = 2e6, up = 1e6, latency = 0.1, jitter = 0.05 }\nevaluate = { every = 2, updates_every = 2 }\n"},
    {"ratings",
     "data = { path = 'u.data', leave_one_out = true }\nmodel = { kind = 'ncf', negatives = 1 }\npartition = { kind = 'natural', clients = "
     "0 }\n"
     "local = { kind = 'sgd', learning_rate = 0.1, batch = 4 }\nevaluate = { every = 2, ranking_every = 2, optimum = false "
     "}\n"},
};

Cell cell_of(const SmallRun& problem, const RunFolder& folder, const std::string& part, const char* precision) {
  const std::string text = "name = 'check'\nrounds = 7\nprecision = '" + std::string(precision) + "'\n" + problem.text;
  Cell cell = parse_cells(text, "check").at(0);
  cell.folder = folder.path();
  if (find_standard_measure(part) == nullptr && !part.empty()) {
    cell.scenario.evaluate.measures = {{part, Registry::instance().default_options("measure", part)}};
    cell.resolved_toml = to_toml(cell.scenario);
  }
  return cell;
}

RunResult run_cell(const Cell& cell, const MachineOptions& machine, std::uint64_t stop = 0, const CheckpointPlan& plan = {}) {
  return CellRunner(DataCatalog(""), machine)
      .run(
          cell, [stop](const RoundRow& row) { return stop == 0 || row.round != stop; }, plan);
}

bool same_rows(const std::vector<RoundRow>& a, const std::vector<RoundRow>& b) { return std::ranges::equal(a, b, fl::same_bits); }

// Calls check(cell, its run, place) for each problem that the measure accepts, in both precisions.
template <class F>
void in_problems(const std::string& part, Findings& findings, const F& check) {
  const RunFolder folder;
  FindingPlace outside(findings, part);
  std::string refusals;
  int num_run = 0;
  for (const SmallRun& problem : kSmallRuns)
    for (const char* precision : {"float32", "float64"}) {
      FindingPlace place = outside.inside(std::string(problem.name) + ", " + precision);
      const Cell cell = cell_of(problem, folder, part, precision);
      std::optional<RunResult> result;
      try {
        (void)CellRunner(DataCatalog(""), {}).check(cell);
      } catch (const ConfigError& error) {
        refusals += std::string("; ") + problem.name + ": " + error.what();
        continue;
      }
      place.guard([&] {
        ++num_run;
        check(cell, run_cell(cell, {}), folder, place);
      });
    }
  if (num_run == 0) outside.fail("it refuses every problem" + refusals);
}

void measure_columns(const std::string& part, Findings& findings) {
  FindingPlace place(findings, part);
  place.guard([&] {
    const NamedPart named{part, Registry::instance().default_options("measure", part)};
    const std::vector<MeasureColumn> declared = columns_of_measure(named);
    place.expect(!declared.empty(), "it has no columns");
    place.expect(columns_of_measure(named) == declared, "it has other columns when it is asked again");
    const auto single = make_part<Measure<float>>("measure", part, named.options, Device::cpu, Precision::float32);
    place.expect(single->columns() == declared, "it has other columns in float32 than in float64");
    if (find_standard_measure(part) != nullptr) return;
    fl::Problems problems;
    check_measures({named}, problems);
    for (const auto& problem : problems) place.fail(problem.message);
  });
}

void measure_values(const std::string& part, Findings& findings) {
  std::vector<MeasureColumn> declared;
  std::vector<bool> met;
  in_problems(part, findings, [&](const Cell& cell, const RunResult& result, const RunFolder&, FindingPlace& place) {
    declared = result.record.columns;
    met.resize(declared.size());
    for (const RoundRow& row : result.rows)
      for (std::size_t c = 0; c < declared.size(); ++c) met[c] = met[c] || !std::isnan(row.more[c]);
    place.expect(same_rows(run_cell(cell, {.threads = 3}).rows, result.rows), "three threads give other values than one");
    place.expect(same_rows(run_cell(cell, {.block = 2, .materialise = true}).rows, result.rows), "blocks of two clients give other values");
  });
  FindingPlace outside(findings, part);
  for (std::size_t c = 0; c < declared.size(); ++c)
    if (!met[c]) outside.fail("column \"" + declared[c].name + "\" has a value in no round of any problem");
}

void measure_resumed(const std::string& part, Findings& findings) {
  in_problems(part, findings, [&](const Cell& cell, const RunResult& result, const RunFolder& folder, FindingPlace& place) {
    CheckpointPlan plan;
    plan.file = folder.path() / "run.checkpoint";
    place.expect(run_cell(cell, {}, kStopRound, plan).record.status == RunStatus::interrupted, "the run could not be interrupted");
    plan.resume = true;
    place.expect(same_rows(run_cell(cell, {}, 0, plan).rows, result.rows), "a run that goes on from a checkpoint has other values");
    std::error_code ignored;
    fs::remove(plan.file, ignored);
  });
}

void measure_untouched(const std::string& part, Findings& findings) {
  in_problems(part, findings, [&](const Cell& cell, const RunResult& result, const RunFolder&, FindingPlace& place) {
    Cell without = cell;
    without.scenario.evaluate.measures.clear();
    const RunResult plain = run_cell(without, {});
    place.expect(plain.record.checksum == result.record.checksum, "the final model is another one than without the measure");
    const auto same_columns = [](const RoundRow& a, const RoundRow& b) { return bits_of_columns(a) == bits_of_columns(b); };
    place.expect(std::ranges::equal(plain.rows, result.rows, same_columns), "other columns have other values than without the measure");
  });
}

}  // namespace

const std::vector<Check>& measure_checks() {
  static const std::vector<Check> checks = {
      {"columns", "its columns have names and descriptions that tables and pages can hold", measure_columns},
      {"values", "its values do not depend on threads and blocks, and each column is measured somewhere", measure_values},
      {"resumed", "a run that goes on from a checkpoint has the same values", measure_resumed},
      {"untouched", "the run and its other columns are what they are without it", measure_untouched},
  };
  return checks;
}

}  // namespace fl::checks
