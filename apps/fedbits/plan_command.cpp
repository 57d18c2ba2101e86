// `fedbits plan FILE`: what a sweep will take, before anything runs: runs, time, memory and bits of every combination.
//
// A worker process, as the sweep would have it, begins one seed of each combination and stops after a fraction of a second. Time is what
// putting the run together, an evaluation and a round took, each times how often it will happen. Memory is what that worker came to hold,
// and what clients it has not met yet and the rounds to come will add. Bits are exact for operators that send the same number each round,
// and otherwise as many as in the first rounds.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <thread>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/numbers.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/terminal.hpp"
#include "fl_core/error.hpp"
#include "scenarios/plugins.hpp"
#include "scenarios/sweep_runner.hpp"

namespace fl {

namespace {

struct PlanArguments {
  std::string file, data;
  std::vector<std::string> settings, plugins;
  int jobs = 0;
  double seconds = 0.2;
};

// One combination of axis values, all its seeds.
struct Combination {
  std::size_t cell = 0;  // the first of its seeds
  std::size_t seeds = 0;
  Calibration calibration{};
  std::string failure{};
};

// What the worker tells of a combination.
struct Told {
  Calibration calibration;
  std::uint64_t peak_bytes = 0;  // of the worker's memory, this combination and those before
};

std::uint64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::vector<Combination> combinations_of(const std::vector<Cell>& cells) {
  std::vector<Combination> combinations;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == 0 || cells[i].axis_labels != cells[combinations.back().cell].axis_labels) combinations.push_back({.cell = i});
    ++combinations.back().seeds;
  }
  return combinations;
}

// Fills in the calibrations; returns the memory of a worker that runs them all.
std::uint64_t calibrate(SweepRunner& runner, double seconds, std::vector<Combination>& combinations) {
  ProcessPool pool(1, [&](std::size_t task, const Report&) {
    const Told told{runner.calibrate(combinations[task].cell, seconds), peak_bytes()};
    std::string text(sizeof told, '\0');
    std::memcpy(text.data(), &told, sizeof told);
    return text;
  });
  std::uint64_t peak = 0, growth = 0;
  PoolEvents events;
  events.signal = caught_signal;
  events.finished = [&](std::size_t task, const std::string& text) {
    Told told;
    std::memcpy(&told, text.data(), sizeof told);
    combinations[task].calibration = told.calibration;
    peak = std::max(peak, told.peak_bytes);
    growth = std::max(growth, told.calibration.growth_bytes);
  };
  events.failed = [&](std::size_t task, const std::string& reason) { combinations[task].failure = reason; };
  std::vector<std::size_t> tasks;
  for (std::size_t i = 0; i < combinations.size(); ++i) tasks.push_back(i);
  pool.run(tasks, events);
  return peak + growth;
}

Table table_of(const std::vector<Cell>& cells, const std::vector<Combination>& combinations) {
  Table table;
  for (const auto& [key, _] : cells.front().axis_labels) table.columns.push_back({key, Align::left});
  for (const char* title : {"runs", "rounds", "a run", "all", "bits up", "bits down"}) table.columns.push_back({title});
  for (const Combination& one : combinations) {
    std::vector<std::string> row;
    for (const auto& [_, label] : cells[one.cell].axis_labels) row.push_back(one_line(label));
    const Calibration& c = one.calibration;
    const auto rounds = static_cast<double>(c.total_rounds);
    row.push_back(std::to_string(one.seeds));
    if (one.failure.empty()) {
      row.insert(row.end(),
                 {std::to_string(c.total_rounds), human_seconds(c.total_s()), human_seconds(static_cast<double>(one.seeds) * c.total_s()),
                  human_bits(rounds * c.bits_up), human_bits(rounds * c.bits_down)});
    } else {
      row.push_back("fails: " + one_line(one.failure));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

int plan(const PlanArguments& arguments) {
  choose_log_level(false, 0);
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const int jobs = arguments.jobs > 0 ? arguments.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  SweepRunner runner(read_cells(arguments.file, arguments.settings), DataCatalog(arguments.data), {});
  runner.check();
  std::vector<Combination> combinations = combinations_of(runner.cells());
  catch_signals();
  const std::uint64_t bytes = calibrate(runner, arguments.seconds, combinations);
  if (caught_signal() != 0) return exit_code_of(caught_signal());

  double seconds = 0, bits = 0;
  bool all_good = true;
  for (const Combination& one : combinations) {
    const auto seeds = static_cast<double>(one.seeds), rounds = static_cast<double>(one.calibration.total_rounds);
    seconds += seeds * one.calibration.total_s();
    bits += seeds * rounds * (one.calibration.bits_up + one.calibration.bits_down);
    all_good = all_good && one.failure.empty();
  }
  print(table_of(runner.cells(), combinations), std::cout);
  std::cout << '\n'
            << runner.cells().size() << " runs, " << human_seconds(seconds) << " of computing, about " << human_seconds(seconds / jobs)
            << " with " << jobs << (jobs == 1 ? " worker" : " workers") << "; " << short_text(static_cast<double>(bytes) / 1e6)
            << " MB per worker, data included; " << human_bits(bits) << " simulated\n";
  if (std::any_of(runner.cells().begin(), runner.cells().end(), [](const Cell& cell) { return cell.needs_tuning(); }))
    std::cout << "values that are found by tuning are planned as the file has them; the tuning runs come on top\n";
  return all_good ? 0 : 1;
}

}  // namespace

void add_plan_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command =
      app.add_subcommand("plan", "predict runs, time, memory and bits of a sweep; runs nothing to its end and stores nothing");
  command->add_option("FILE", arguments->file, "scenario file (TOML)")->required();
  command->add_option("--set", arguments->settings, "change a key: --set partition.alpha=0.1 (repeatable)")->allow_extra_args(false);
  command->add_option("--data", arguments->data, "folder with data sets (else FEDBITS_DATA, ./data, the embedded set)");
  add_plugin_option(*command, arguments->plugins);
  command->add_option("-j,--jobs", arguments->jobs, "runs at a time, for the prediction of time (default: all cores)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--seconds", arguments->seconds, "how long each combination is tried")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->footer("Example: fedbits plan study.toml --jobs 8");
  command->callback([arguments, guard] { guard([&] { return plan(*arguments); }); });
}

}  // namespace fl
