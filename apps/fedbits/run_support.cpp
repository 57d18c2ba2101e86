#include "apps/fedbits/run_support.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string_view>

#include "apps/fedbits/plugin_option.hpp"
#include "apps/fedbits/tuning_display.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/printable.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/memory/usable_cores.hpp"
#include "scenarios/file/analysis_plan.hpp"
#include "scenarios/results/end_point.hpp"
#include "scenarios/sweep/tuning.hpp"
#include "study/machine/memory.hpp"
#include "study/output/numbers.hpp"

namespace fl {

namespace {
volatile std::sig_atomic_t g_signal = 0, g_is_silent = 0;
// The request that signals make. It exists before their handlers do.
StopRequest& stop_of_signals() {
  static StopRequest one;
  return one;
}
void on_signal(int signal) {
  constexpr std::string_view kStopping = "\nfedbits: stopping; the same signal again stops at once\n";
  const int reason = errno;
  if (g_signal == 0 && g_is_silent == 0) static_cast<void>(!::write(STDERR_FILENO, kStopping.data(), kStopping.size()));
  errno = reason;
  ask_to_stop(signal);
  std::signal(signal, SIG_DFL);
}
void tell_of_preparation(const std::string& text) {
  if (g_is_silent == 0) std::fprintf(stderr, "fedbits: preparing: %s\n", text.c_str());
}
}  // namespace

void catch_signals(bool quiet) {
  g_is_silent = quiet ? 1 : 0;
  static_cast<void>(stop_of_signals());
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGXCPU}) std::signal(signal, on_signal);
  if (std::signal(SIGHUP, on_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  set_stop_source({.is_asked = [] { return g_signal != 0; }, .tell = tell_of_preparation});
}
int caught_signal() { return g_signal; }
StopToken stop_token() { return stop_of_signals().token(); }
void ask_to_stop(int signal) {
  g_signal = signal;
  if (signal != 0)
    stop_of_signals().ask();
  else
    stop_of_signals().take_back();
}
int exit_code_of(int signal) { return 128 + signal; }

namespace {
// Formats the text of a log line so that it is safe to show on a terminal.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<PrintableMessage>(); }
};
}  // namespace

void choose_log_level(bool quiet, int verbose) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("fedbits"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("%^%l%$: %*");
  spdlog::set_formatter(std::move(formatter));
  spdlog::set_level(quiet ? spdlog::level::err : verbose > 0 ? spdlog::level::debug : spdlog::level::warn);
}

std::vector<Cell> cells_of(const StudyArguments& arguments, const DataCatalog* catalog) {
  return arguments.text ? read_cells(*arguments.text, arguments.settings, catalog)
                        : read_cells(arguments.file, arguments.settings, catalog);
}

void add_study_options(CLI::App& command, StudyArguments& arguments) {
  command.add_option("FILE", arguments.file, "scenario file (TOML)")->required();
  command.add_option("--set", arguments.settings, "change a key: --set partition.alpha=0.1 (repeatable)")->allow_extra_args(false);
  add_plugin_option(command, arguments.plugins);
  command.add_option("--out", arguments.out, "folder for results.sqlite (default: fedbits-out/NAME, with the scenario's name)");
  command.add_option("--data", arguments.data, "folder with data sets (default: FEDBITS_DATA, ./data, the embedded set)");
  command.add_option("--device", arguments.device, "cpu, cuda or auto")->capture_default_str();
  command.add_flag("--resume", arguments.checkpoints.resume,
                   "continue: finished runs are kept, begun ones continue from their checkpoints");
  command.add_flag("--again", arguments.again, "repeat runs that are stored")->excludes("--resume");
  command.add_option("--checkpoint-rounds", arguments.checkpoints.rounds, "write a checkpoint every N rounds");
  command.add_option("--checkpoint-minutes", arguments.checkpoints.minutes, "write a checkpoint every N minutes; 0 = never")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command.add_flag("--any-build", arguments.checkpoints.any_build, "also continue from checkpoints of another build of fedbits");
  command.add_option("--save-model", arguments.models.folder,
                     "write each finished run's final model to this folder, as HASH.safetensors or HASH.npy");
  command.add_option("--model-format", arguments.models.format, "safetensors (tensors by name) or npy (one vector), for --save-model")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, ModelFormat>{{"safetensors", ModelFormat::safetensors}, {"npy", ModelFormat::npy}}))
      ->needs("--save-model");
  add_state_memory_option(command, arguments.state_memory);
  command.add_option("--state-folder", arguments.state_folder,
                     "folder for client state beyond --state-memory, on a local disk (default: OUT/checkpoints)");
  command.add_option("--log-json", arguments.log_json,
                     "write events to this file, one line of JSON each: runs that begin and end, measured rounds, refusals");
  add_status_option(command, arguments.status);
  command.add_flag("-q,--quiet", arguments.quiet, "print errors only");
  command.add_flag("-v,--verbose", arguments.verbose, "print more: a line for every run, with its hash");
}

bool has_everything(const RunStore& store, const std::string& run, const ModelOutput& models) {
  std::error_code ignored;
  if (!store.has_finished(run)) {
    if (const std::optional<DamagedRun> damaged = store.damage_of(run))
      spdlog::warn("{}: {}; it is repeated", store.file().string(), to_string(*damaged));
    return false;
  }
  return (models.folder.empty() || std::filesystem::exists(models.file_of(run), ignored));
}

std::string title_of(const Cell& cell, std::size_t number, std::size_t count) {
  std::string title = cell.scenario.name;
  if (count > 1) title += " " + std::to_string(number) + "/" + std::to_string(count);
  for (const auto& [_, label] : cell.axis_labels) title += "  " + shown_label(label);
  return title;
}

// Returns the labels of the budget's reference that differ from those of a cell; if all cells are references, the first label.
std::string label_of_budget(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells) {
    if (cell.budget_labels.empty()) continue;
    for (std::size_t a = 0; a < cell.axis_labels.size(); ++a)
      if (cell.axis_labels[a] != cell.budget_labels[a]) text += (text.empty() ? "" : " + ") + shown_label(cell.budget_labels[a].second);
    if (!text.empty()) return text;
  }
  const auto budgeted = std::ranges::find_if(cells, [](const Cell& cell) { return !cell.budget_labels.empty(); });
  return budgeted == cells.end() ? "" : shown_label(budgeted->budget_labels.front().second);
}

namespace {

// Returns "12%" or "0.4%".
std::string percent(double share) { return short_text(100 * share) + "%"; }

// Returns "tuned  compressor.up=hard  local.learning_rate = 0.3  of 5 candidates".
std::string text_of(const TunedOption& tuned) {
  std::string line = "tuned";
  for (const auto& [key, label] : tuned.axis_labels) line += "  " + key + "=" + shown_label(label);
  line += "  " + tuned.option + " = " + to_string(tuned.value);
  if (tuned.target_bits > 0)
    return line + "  sends " + human_bits(tuned.bits) + " for " + human_bits(tuned.target_bits) +
           (tuned.match.is_matched() ? "" : ", matched within " + percent(std::fabs(tuned.match.deviation)));
  line += "  of " + std::to_string(tuned.candidates) + " candidates";
  if (!std::isnan(tuned.target))
    line += std::isnan(tuned.bits) ? "; does not reach " + short_text(tuned.target)
                                   : "; reaches " + short_text(tuned.target) + " with " + human_bits(tuned.bits);
  if (tuned.budget_bits > 0) line += " at " + human_bits(tuned.budget_bits);
  return line + (tuned.note.empty() || tuned.at_edge ? "" : "; " + tuned.note);
}

// Returns a warning about a tuned value; "" for no warning.
std::string warning_of(const TunedOption& tuned) {
  if (tuned.target_bits > 0)
    return tuned.match.is_matched() ? "" : "no value of the option sends as many bits; the nearest is kept, and recorded with the runs";
  if (tuned.at_edge)
    return "the best value is at the edge of those that were tried" + (tuned.note.empty() ? "" : " (" + tuned.note + ")") +
           "; another grid may do better";
  if (tuned.missed > 0)
    return "the level of the reference was not reached on " + std::to_string(tuned.missed) +
           " of the tuning seeds, in four times the rounds";
  if (std::isnan(tuned.target) && tuned.evaluations < kLeastEvaluations)
    return "its end point is a mean of " + std::to_string(tuned.evaluations) + " evaluations; a smaller evaluate.every gives more";
  return "";
}

}  // namespace

void tune(std::vector<Cell>& cells, const std::string& out, const std::string& data, const MachineShare& share, bool quiet,
          StudyWatch& watch) {
  TuningDisplay display(watch, tuning_folder(out).string(), quiet ? ProgressStyle::silent : stderr_style());
  TuningMachine machine{.workers = share.jobs,
                        .kind = share.workers,
                        .threads = share.threads,
                        .memory_bytes = share.memory_bytes,
                        .store = tuning_folder(out),
                        .paging = share.paging,
                        .note = {},
                        .stop = stop_token(),
                        .observer = &display};
  if (!quiet) machine.note = [&display](const std::string& line) { display.note(line); };
  for (const TunedOption& tuned : tune_cells(cells, DataCatalog(data, share.data_memory), machine)) {
    const std::string line = text_of(tuned);
    if (!quiet) std::cerr << line << std::endl;
    if (const std::string warning = warning_of(tuned); !warning.empty()) spdlog::warn("{}: {}", line, warning);
  }
}

std::filesystem::path pages_folder(const StudyArguments& arguments, const std::filesystem::path& checkpoints) {
  return arguments.state_folder.empty() ? checkpoints : std::filesystem::path(arguments.state_folder);
}

void add_state_memory_option(CLI::App& command, std::string& memory) {
  command.add_option("--state-memory", memory,
                     "memory for the clients' state of a run, such as 2G; what does not fit is kept in a file (default: no bound, or the "
                     "free memory of a GPU); results do not depend on it");
}

}  // namespace fl
