// `fedbits plan FILE`: predicts the cost of a sweep before anything runs: runs, time, memory and bits of every combination.
//
// scenarios/sweep/study_plan.hpp and scenarios/experiment/calibration.hpp describe the method.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <set>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/split_text.hpp"
#include "apps/fedbits/store_notes.hpp"
#include "apps/fedbits/terminal.hpp"
#include "fl_core/config/error.hpp"
#include "scenarios/experiment/compressed_input.hpp"
#include "scenarios/experiment/server_data.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "scenarios/results/end_point.hpp"
#include "scenarios/sweep/study_plan.hpp"
#include "scenarios/sweep/tuning.hpp"
#include "study/driver/study_title.hpp"
#include "study/machine/machine_share.hpp"
#include "study/output/numbers.hpp"
#include "study/output/output_file.hpp"
#include "study/planning/plan_json.hpp"

namespace fl {

namespace {

constexpr std::size_t kMostRows = 100;  // of the table

struct PlanArguments {
  std::string file, data, json, split_csv, split_file, server_data, state_memory;
  std::vector<std::string> settings, plugins;
  int jobs = 0, threads = 1;
  std::size_t most = PlanSettings{}.most;
  double seconds = 0;
  bool split = false;
};

std::vector<std::string> row_of(const Combination& one, const Cell& cell, bool has_tuning) {
  std::vector<std::string> row;
  for (const auto& [_, label] : cell.axis_labels) row.push_back(shown_label(label));
  if (has_tuning) row.insert(row.end(), {std::to_string(one.candidates), exact_text(one.tuning_runs)});
  row.push_back(std::to_string(one.seeds));
  if (!one.trial.failure.empty()) {
    row.push_back("fails: " + one_line(one.trial.failure));
    return row;
  }
  const Calibration& c = one.trial.calibration;
  row.insert(row.end(), {std::to_string(c.total_rounds), human_seconds(one.run_s()), human_seconds(std::max(0.0, one.all_s())),
                         human_bits(c.bits_up), human_bits(c.bits_down)});
  return row;
}

Table table_of(const std::vector<Cell>& cells, const StudyPlan& plan) {
  Table table;
  const bool has_tuning = plan.tuning_runs > 0;
  for (const auto& [key, _] : cells.front().axis_labels) table.columns.push_back({key, Align::left});
  if (has_tuning) table.columns.insert(table.columns.end(), {{"candidates"}, {"tuning runs"}});
  for (const char* title : {"runs", "rounds", "a run", "all", "bits up", "bits down"}) table.columns.push_back({title});
  for (const Combination& one : plan.combinations) {
    const bool failed = !one.trial.failure.empty();
    if (table.rows.size() < kMostRows || failed) table.rows.push_back(row_of(one, cells[one.cell], has_tuning));
  }
  return table;
}

std::string count_of(std::size_t count, const std::string& thing) { return std::to_string(count) + " " + thing + (count == 1 ? "" : "s"); }

// Returns whether clients send their vectors as they are: a report shows such a method as a reference, about which no claim is made.
bool sends_everything(const Cell& cell) {
  const CompressorSpec& up = cell.scenario.up.at("");
  if (up.part.kind != "identity") return false;
  Options options = up.part.options;
  Schema schema = options.schema();
  const Field* format = schema.find("format");
  return format == nullptr || to_string(format->value()) == "\"native\"";
}

// Returns the combinations whose methods get claims: those that compress, if at least two methods do, else all.
std::vector<const Combination*> with_claims(const StudyPlan& plan, const std::vector<Cell>& cells) {
  std::vector<const Combination*> all, compressing;
  std::set<std::string> methods;
  for (const Combination& one : plan.combinations) {
    all.push_back(&one);
    if (sends_everything(cells[one.cell])) continue;
    compressing.push_back(&one);
    for (const auto& [key, label] : cells[one.cell].axis_labels)
      if (key.starts_with("compressor") || key.starts_with("feedback")) methods.insert(label);
  }
  return methods.size() < 2 ? all : compressing;
}

// Warns if values are measured too rarely. A claim needs kLeastEvaluations within the last kWindow of the bits that two methods share, also
// for the more expensive method.
void warn_of_rare_values(const StudyPlan& plan, const std::vector<Cell>& cells) {
  const Cell& first = cells.front();
  const std::int64_t every = first.scenario.evaluate.every;
  const bool compares = std::ranges::any_of(
      first.axis_labels, [](const auto& axis) { return axis.first.starts_with("compressor") || axis.first.starts_with("feedback"); });
  if (!compares) return;
  double least = std::numeric_limits<double>::infinity(), dearest_round = 0;
  for (const Combination* one : with_claims(plan, cells)) {
    const Calibration& c = one->trial.calibration;
    if (!one->trial.failure.empty() || c.bits_up <= 0 || c.total_rounds == 0) continue;
    least = std::min(least, c.bits_up);
    dearest_round = std::max(dearest_round, c.bits_up / static_cast<double>(c.total_rounds));
  }
  const double rounds = dearest_round > 0 ? least / dearest_round : 0;
  const double needed = static_cast<double>(kLeastEvaluations * static_cast<std::size_t>(every)) / kWindow;
  if (rounds == 0 || rounds >= needed) return;
  std::cout << "claims at equal uplink bits need " << kLeastEvaluations << " evaluations in the last " << short_text(100 * kWindow)
            << "% of the bits: with evaluate.every = " << every << " that takes " << short_text(needed)
            << " rounds of the method with the most bits per round, which plays about " << short_text(std::ceil(rounds))
            << " for the bits of the cheapest method; more rounds of the cheap methods" << (every > 1 ? ", evaluate.every = 1" : "")
            << " or `report --window` help\n";
}

// Warns if compared methods differ in their inputs. The methods are the labels of the first axis of compressors, else of feedbacks; methods
// with the same other labels are compared.
void warn_of_differing_inputs(const std::vector<Cell>& cells) {
  const auto is_method = [&](const std::string& prefix) {
    return [prefix](const std::pair<std::string, std::string>& axis) { return axis.first.starts_with(prefix); };
  };
  const AxisLabels& first = cells.front().axis_labels;
  auto method = std::ranges::find_if(first, is_method("compressor"));
  if (method == first.end()) method = std::ranges::find_if(first, is_method("feedback"));
  if (method == first.end()) return;
  const auto axis = static_cast<std::size_t>(method - first.begin());
  std::map<AxisLabels, std::vector<std::pair<std::string, std::string>>> compared;
  for (const Cell& cell : cells) {
    AxisLabels others = cell.axis_labels;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
    compared[others].emplace_back(cell.axis_labels[axis].second, compressed_input(cell.scenario));
  }
  for (const auto& [_, methods] : compared)
    if (const std::string text = differing_inputs(methods); !text.empty()) {
      std::cout << "methods that are compared differ in what they compress: " << text
                << "; set compressor.up.unit and compressor.up.scope to make them alike\n";
      return;
    }
}

// Prints the budget at which tuning compares candidates, and the budget at which the study's runs end.
void print_budget(const std::vector<Cell>& cells) {
  const auto tuned = std::ranges::find_if(cells, [](const Cell& cell) { return !cell.tuned_keys.empty(); });
  const auto budgeted = std::ranges::find_if(cells, [](const Cell& cell) { return !cell.budget_labels.empty(); });
  if (budgeted == cells.end()) {
    if (tuned != cells.end()) std::cout << "candidates are compared at the scenario's rounds\n";
    return;
  }
  if (budgeted->tune->at == TuneSettings::At::target) {
    std::cout << "candidates are compared by the " << to_string(budgeted->tune->budget_bits) << " with which they reach the level of "
              << label_of_budget(cells) << " after the scenario's rounds within " << budgeted->tune->margin.text
              << "; their runs and the study's end there, or after " << kMostRounds << " times the rounds, which is assumed here\n";
    return;
  }
  std::cout << (tuned == cells.end() ? "" : "candidates are compared") << (tuned != cells.end() && budgeted->goes_to_budget ? ", and " : "")
            << (budgeted->goes_to_budget ? "the study's runs end" : "") << " at the " << to_string(budgeted->tune->budget_bits) << " that "
            << label_of_budget(cells) << (budgeted->tune->budget_bits == Against::seconds ? " takes for" : " sends in")
            << " the scenario's rounds, or after " << kMostRounds << " times the rounds\n";
}

void print_summary(const StudyPlan& plan, const std::vector<Cell>& cells, int jobs) {
  std::cout << count_of(cells.size(), "run") << ", " << human_seconds(plan.study_s) << " of computing; "
            << (plan.tuning_runs > 0 ? "with tuning " : "") << "about " << human_seconds(wall_s(plan, jobs)) << " with "
            << count_of(static_cast<std::size_t>(jobs), "worker") << "; " << short_text(static_cast<double>(plan.worker_bytes) / 1e6)
            << " MB per worker, data included; " << human_bits(plan.bits) << " simulated\n";
  if (plan.tuning_runs > 0)
    std::cout << "before them about " << exact_text(plan.tuning_runs) << " tuning runs, " << human_seconds(plan.tuning_s)
              << " of computing; this assumes that matching bits needs " << kExpectedSteps
              << " steps, that grids are not extended, and that found values cost as much as the file's\n";
  print_budget(cells);
  for (const std::string& line : grids_that_end(cells)) std::cout << "tuned key " << line << '\n';
  if (plan.tried < plan.combinations.size())
    std::cout << plan.tried << " of " << plan.combinations.size()
              << " combinations were tried; the others are planned like the nearest of these (--try N tries more)\n";
  const StopOptions& stop = cells.front().scenario.stop;
  if (stop.accuracy || stop.f_gap || stop.grad_norm_sq || stop.bits || stop.bits_up || !stop.measures.empty())
    std::cout << "[stop] may end runs earlier: all rounds are planned\n";
  warn_of_rare_values(plan, cells);
  warn_of_differing_inputs(cells);
}

std::string human_bytes(std::uint64_t bytes) {
  const bool is_large = bytes >= 1000000000;
  return short_text(static_cast<double>(bytes) / (is_large ? 1e9 : 1e6)) + (is_large ? " GB" : " MB");
}

void print_device_need(const DeviceNeed& need) {
  std::cout << "with --device cuda a run takes up to " << human_bytes(need.own_bytes()) << " of the GPU's memory";
  if (need.least_state_bytes < need.state_bytes)
    std::cout << ", " << human_bytes(need.least_bytes()) << " of it at least: further client state can be in a file";
  std::cout << "; the data take " << human_bytes(need.data_bytes) << ", once for runs that share them\n";
  if (need.trains_on_cpu.empty()) std::cout << "  clients train on the GPU\n";
  for (const std::string& why : need.trains_on_cpu) std::cout << "  clients train on the CPU: " << why << '\n';
  if (need.needs_managed.empty()) {
    std::cout << "  clients' vectors, state and messages are in the GPU's own memory\n";
    return;
  }
  std::cout << "  clients' vectors, state and messages are in managed memory; a run takes at most 80% of the free memory for it:\n";
  for (const std::string& why : need.needs_managed) std::cout << "    " << why << '\n';
}

// Says which combinations close their rounds before any message can be there.
void print_late_messages(const std::vector<Cell>& cells, const StudyPlan& plan) {
  for (const Combination& one : plan.combinations) {
    const double fastest_s = one.trial.calibration.too_late_s;
    if (fastest_s == 0) continue;
    std::string name;
    for (const auto& [_, label] : cells[one.cell].axis_labels) name += (name.empty() ? "" : ", ") + shown_label(label);
    std::cout << (name.empty() ? "" : name + ": ") << "no client meets [delivery]: its rounds close before the first message, which needs "
              << short_text(fastest_s) << " s of simulated time, so that nothing is learned\n";
  }
}

// Prints the simulated seconds of the clients' devices, from stated costs: a line for each combination and kind of device.
void print_tiers(const std::vector<Cell>& cells, const StudyPlan& plan) {
  Table table;
  for (const auto& [key, _] : cells.front().axis_labels) table.columns.push_back({key, Align::left});
  table.columns.push_back({"device", Align::left});
  for (const char* title : {"clients", "local work", "messages", "reading", "a round"}) table.columns.push_back({title});
  for (const Combination& one : plan.combinations)
    for (const TierSeconds& tier : one.trial.calibration.tiers) {
      if (table.rows.size() >= kMostRows) continue;
      std::vector<std::string> row;
      for (const auto& [_, label] : cells[one.cell].axis_labels) row.push_back(shown_label(label));
      row.insert(row.end(), {tier.name, std::to_string(tier.clients)});
      for (const double seconds : {tier.local_s, tier.message_s, tier.reading_s, tier.round_s()}) row.push_back(short_text(seconds) + " s");
      table.rows.push_back(std::move(row));
    }
  if (table.rows.empty()) return;
  std::cout << "simulated seconds of a client's computing in a round, from stated costs and the rates of [devices]:\n";
  print(table, std::cout);
}

void print_dropped_rows(const StudyPlan& plan) {
  if (plan.facts.num_dropped_rows == 0 && plan.facts.num_dropped_test_rows == 0) return;
  std::cout << "data.missing = \"drop\" leaves out " << count_of(plan.facts.num_dropped_rows, "training row") << " and "
            << count_of(plan.facts.num_dropped_test_rows, "test row") << " with a missing value\n";
}

void print_step_theorems(const StepTheorems& theorems) {
  for (const std::string& sentence : theorems.sentences()) std::cout << sentence << '\n';
}

void write_json(const StudyPlan& plan, const std::vector<Cell>& cells, int jobs, const std::string& path) {
  OutputFile file(path);
  write_plan(plan, cells, jobs, file.stream());
  file.close();
  file.rename();
}

int show_splits(const PlanArguments& arguments) {
  const DataCatalog catalog(arguments.data);
  const std::vector<SplitStatistics> splits =
      split_statistics(read_cells(arguments.file, arguments.settings, &catalog), catalog, kMostShownSplits);
  for (const SplitStatistics& split : splits) {
    if (!arguments.split) break;
    draw(split, std::cout);
    if (&split != &splits.back()) std::cout << '\n';
  }
  if (splits.size() == kMostShownSplits) std::cout << "these are the first " << kMostShownSplits << " splits of the study\n";
  if (arguments.split_csv.empty()) return 0;
  OutputFile file(arguments.split_csv);
  write_csv(splits, file.stream());
  file.close();
  file.rename();
  return 0;
}

int write_split_file(const PlanArguments& arguments) {
  const DataCatalog catalog(arguments.data);
  const SplitFile split = only_split(read_cells(arguments.file, arguments.settings, &catalog), catalog);
  OutputFile file(arguments.split_file);
  write_split(split, file.stream());
  file.close();
  file.rename();
  return 0;
}

int write_server_data(const PlanArguments& arguments) {
  const DataCatalog catalog(arguments.data);
  ThreadPool pool(arguments.threads);
  ServerData data;
  data.add(read_cells(arguments.file, arguments.settings, &catalog), catalog, pool);
  const std::vector<std::byte> bytes = data.bytes();
  OutputFile file(arguments.server_data);
  file.stream().write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  file.rename();
  tell_written(count_of(data.num_problems(), "problem") + " without training rows", {arguments.server_data});
  return 0;
}

int plan(const PlanArguments& arguments) {
  choose_log_level(false, 0);
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  if (!arguments.server_data.empty()) return write_server_data(arguments);
  if (!arguments.split_file.empty()) {
    const int code = write_split_file(arguments);
    return arguments.split || !arguments.split_csv.empty() ? show_splits(arguments) : code;
  }
  if (arguments.split || !arguments.split_csv.empty()) return show_splits(arguments);
  catch_signals(false);
  const int jobs = jobs_for(arguments.jobs, arguments.threads);
  SweepSettings settings;
  settings.workers = jobs;
  settings.threads = arguments.threads;
  settings.paging = paging_of(arguments.state_memory, "");
  const DataCatalog catalog(arguments.data);
  SweepRunner runner(read_cells(arguments.file, arguments.settings, &catalog), catalog, settings);
  const StudyPlan plan = plan_study(runner, {.workers = jobs, .seconds = arguments.seconds, .most = arguments.most, .stop = stop_token()});
  if (caught_signal() != 0) return exit_code_of(caught_signal());
  const std::vector<Cell>& cells = runner.cells();
  const Table table = table_of(cells, plan);
  print(table, std::cout);
  if (table.rows.size() < plan.combinations.size())
    std::cout << "... and " << plan.combinations.size() - table.rows.size() << " more; --json FILE writes all of them\n";
  std::cout << '\n';
  for (const std::string& text : plan.facts.data) std::cout << "data: " << one_line(text) << '\n';
  print_summary(plan, cells, jobs);
  print_device_need(plan.device);
  print_tiers(cells, plan);
  print_late_messages(cells, plan);
  print_dropped_rows(plan);
  print_step_theorems(plan.facts.step_theorems);
  if (!arguments.json.empty()) write_json(plan, cells, jobs, arguments.json);
  return plan.all_good ? 0 : 1;
}

}  // namespace

void add_plan_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "predict runs, time, memory and bits of a sweep; completes no run and stores no result");
  command->add_option("FILE", arguments->file, "scenario file (TOML)")->required();
  command->add_option("--set", arguments->settings, "change a key: --set partition.alpha=0.1 (repeatable)")->allow_extra_args(false);
  command->add_option("--data", arguments->data, "folder with data sets (default: FEDBITS_DATA, ./data, the embedded set)");
  add_plugin_option(*command, arguments->plugins);
  command->add_option("-j,--jobs", arguments->jobs, "runs at a time, as for sweep (default: cores / threads)")->check(CLI::Range(1, 4096));
  command->add_option("--threads", arguments->threads, "threads of each run, as for sweep")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  add_state_memory_option(*command, arguments->state_memory);
  command->add_option("--seconds", arguments->seconds, "how long each combination is tried (default: 0.2, less if there are many)")
      ->check(CLI::Range(0.001, 3600.0));
  command
      ->add_option("--try", arguments->most,
                   "largest number of combinations that are tried; the others are planned like the nearest of them")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  CLI::Option* json = command->add_option("--json", arguments->json, "write the whole plan to this file, in seconds, bytes and bits");
  command->add_flag("--split", arguments->split, "show how many rows of each class every client holds, instead of planning")
      ->excludes(json);
  command->add_option("--split-csv", arguments->split_csv, "write the split to this file: a line per client and class")->excludes(json);
  command
      ->add_option("--split-file", arguments->split_file,
                   "write which client holds which row to this file, which partition.kind = \"file\" reads")
      ->excludes(json);
  command
      ->add_option("--server-data", arguments->server_data,
                   "write what a server without training rows reads to this file: test rows, sizes and constants")
      ->excludes(json);
  command->footer(
      "Examples:\n"
      "  fedbits plan study.toml --jobs 8\n"
      "  fedbits plan study.toml --split-file split.csv --set 'sweep.axis=[]' --set sweep.seeds=1");
  command->callback([arguments, guard] { guard([&] { return plan(*arguments); }); });
}

}  // namespace fl
