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
}  // namespace

void tell_of_preparation(const std::string& text) {
  if (g_is_silent == 0) std::fprintf(stderr, "fedbits: preparing: %s\n", text.c_str());
}

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

void add_state_memory_option(CLI::App& command, std::string& memory) {
  command.add_option("--state-memory", memory,
                     "memory for the clients' state of a run, such as 2G; what does not fit is kept in a file (default: no bound, or the "
                     "free memory of a GPU); results do not depend on it");
}

}  // namespace fl
