// Code that `run` and `sweep` share: options, signals, titles, logging, locations of checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/fedbits/study_watch.hpp"
#include "apps/fedbits/terminal.hpp"
#include "fl_core/config/stop_token.hpp"
#include "fl_core/state/state_pager.hpp"
#include "scenarios/experiment/model_file.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/sweep_runner.hpp"
#include "study/driver/study_settings.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// Installs handlers with which SIGINT, SIGTERM, SIGHUP, SIGUSR1 (which Slurm can send before a job's time ends) and SIGXCPU ask the program
// to stop, and say so unless `quiet`; the second signal of a kind ends the process at once. Work before a first round is then given up
// (fl_core/config/stopping.hpp). SIGHUP stays ignored if it was ignored at the start of the process, as under nohup.
void catch_signals(bool quiet);
// Returns the signal that asked to stop, 0 = none.
[[nodiscard]] int caught_signal();
// Returns the token of the request that signals make.
[[nodiscard]] StopToken stop_token();
// Asks to stop as this signal would; 0 takes the request back. May be called by a handler of signals.
void ask_to_stop(int signal);
// Returns 128 plus the signal: 129, 130, 138, 143 or 152.
[[nodiscard]] int exit_code_of(int signal);

void choose_log_level(bool quiet, int verbose);

// Tells of work that takes long before a first round, on stderr; as a part of catch_signals(), and for a study.
void tell_of_preparation(const std::string& text);

// Options for writing and using checkpoints.
using CheckpointArguments = CheckpointSettings;

// Options of both commands.
struct StudyArguments : StudySettings {
  StudyArguments() { workers = Workers::processes; }
  std::string log_json, status;
  bool quiet = false;
  int verbose = 0;
};
void add_study_options(CLI::App& command, StudyArguments& arguments);
// Returns whether lines of runs contain their hashes, which requires --verbose.
[[nodiscard]] inline Hashes hashes_of(const StudyArguments& arguments) { return arguments.verbose > 0 ? Hashes::shown : Hashes::hidden; }

// Adds the option --state-memory, whose value paging_of() reads.
void add_state_memory_option(CLI::App& command, std::string& memory);

}  // namespace fl
