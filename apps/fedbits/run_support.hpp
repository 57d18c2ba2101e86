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
#include "study/machine/machine_share.hpp"
#include "study/results/store_folders.hpp"

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

// Returns "name 3/12  alpha=0.1  top-1%".
[[nodiscard]] std::string title_of(const Cell& cell, std::size_t number, std::size_t count);

// Returns the name of the method whose bits are the budget of tuning or of the study; "" without a budget.
[[nodiscard]] std::string label_of_budget(const std::vector<Cell>& cells);

// Options for writing and using checkpoints.
struct CheckpointArguments {
  std::uint64_t rounds = 0;
  double minutes = 5;
  bool resume = false, any_build = false;
};

// The study's use of the machine.
struct MachineArguments {
  std::string device = "cpu", state_memory, state_folder;
  Workers workers = Workers::processes;
};

// Options of both commands.
struct StudyArguments : MachineArguments {
  std::optional<ScenarioText> text{};  // a scenario in the place of the file
  std::string file, out, data, log_json, status;
  std::vector<std::string> settings, plugins;
  ModelOutput models;
  bool quiet = false, again = false;
  bool silent = false;  // prints nothing: the watch hears of every run
  int verbose = 0;
  CheckpointArguments checkpoints;
};
// Reads the cells of the scenario. With a catalog, data sets and files that are not there are problems.
[[nodiscard]] std::vector<Cell> cells_of(const StudyArguments& arguments, const DataCatalog* catalog);
void add_study_options(CLI::App& command, StudyArguments& arguments);
// Returns whether lines of runs contain their hashes, which requires --verbose.
[[nodiscard]] inline Hashes hashes_of(const StudyArguments& arguments) { return arguments.verbose > 0 ? Hashes::shown : Hashes::hidden; }

// Returns whether the store holds a run's finished result and, with --save-model, its model file exists. A run without its file is
// repeated, which gives the same bytes.
[[nodiscard]] bool has_everything(const RunStore& store, const std::string& run, const ModelOutput& models);

// Returns the folder for paged state: the folder that the user chose, or the checkpoint folder.
[[nodiscard]] std::filesystem::path pages_folder(const StudyArguments& arguments, const std::filesystem::path& checkpoints);

// Adds the option --state-memory, whose value paging_of() reads.
void add_state_memory_option(CLI::App& command, std::string& memory);

// Tunes the cells, with the tuning runs stored in OUT/tuning, and reports its progress and the found values on stderr and to `watch`. With
// workers that are processes, call it before starting any thread.
void tune(std::vector<Cell>& cells, const std::string& out, const std::string& data, const MachineShare& share, bool quiet,
          StudyWatch& watch);

}  // namespace fl
