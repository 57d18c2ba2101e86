#include "apps/fedbits/run_support.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>

namespace fl {

namespace {
volatile std::sig_atomic_t g_signal = 0;
void on_signal(int signal) {
  g_signal = signal;
  std::signal(signal, SIG_DFL);
}
}  // namespace

void catch_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}
int caught_signal() { return g_signal; }
int exit_code_of(int signal) { return signal == SIGTERM ? 143 : 130; }

void choose_log_level(bool quiet, int verbose) {
  spdlog::set_default_logger(spdlog::stderr_color_st("fedbits"));
  spdlog::set_pattern("%^%l%$: %v");
  spdlog::set_level(quiet ? spdlog::level::err : verbose > 0 ? spdlog::level::debug : spdlog::level::warn);
}

std::string title_of(const Cell& cell, std::size_t number, std::size_t count) {
  std::string title = cell.scenario.name;
  if (count > 1) title += " " + std::to_string(number) + "/" + std::to_string(count);
  for (const auto& [_, label] : cell.axis_labels) title += "  " + label;
  return title;
}

std::filesystem::path checkpoint_folder(const std::string& out) { return std::filesystem::path(out) / "checkpoints"; }

}  // namespace fl
