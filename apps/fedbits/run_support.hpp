// What `run` and `sweep` share: options, signals, titles, logging, where checkpoints lie.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/fedbits/terminal.hpp"
#include "fl_core/state/state_pager.hpp"
#include "scenarios/experiment/model_file.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_store.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// From now on SIGINT, SIGTERM and SIGHUP ask for the end; the second one of a kind ends the process at once. SIGHUP stays ignored where the
// process was started so, as by nohup.
void catch_signals();
// The signal that asked for the end, 0 = none.
[[nodiscard]] int caught_signal();
// 128 and the signal: 129, 130 or 143.
[[nodiscard]] int exit_code_of(int signal);

void choose_log_level(bool quiet, int verbose);

// "name 3/12  alpha=0.1  top-1%"
[[nodiscard]] std::string title_of(const Cell& cell, std::size_t number, std::size_t count);

// Returns the name of the method whose bits are the budget of tuning or of the study; "" without a budget.
[[nodiscard]] std::string label_of_budget(const std::vector<Cell>& cells);

// When runs write checkpoints.
struct CheckpointArguments {
  std::uint64_t rounds = 0;
  double minutes = 5;
  bool resume = false, any_build = false;
};

// Options of both commands.
struct StudyArguments {
  std::string file, out, data, device = "cpu", state_memory, state_folder, log_json;
  std::vector<std::string> settings, plugins;
  ModelOutput models;
  bool quiet = false, again = false;
  int verbose = 0;
  CheckpointArguments checkpoints;
};
void add_study_options(CLI::App& command, StudyArguments& arguments);
// Returns whether lines of runs name their hashes: with --verbose.
[[nodiscard]] inline Hashes hashes_of(const StudyArguments& arguments) { return arguments.verbose > 0 ? Hashes::shown : Hashes::hidden; }

// Whether the store holds everything that was asked for of a run: its finished result and, with --save-model, its model's file. A run that
// lacks its file is repeated, which gives the same bytes.
[[nodiscard]] bool has_everything(const RunStore& store, const std::string& run, const ModelOutput& models);

// Results of a scenario called NAME lie in fedbits-out/NAME unless --out says otherwise: scenarios of one name share a store.
inline constexpr const char* kResultsFolder = "fedbits-out";
// Returns that folder. Characters that are no letters, digits, dots, dashes or underscores become dashes.
[[nodiscard]] std::filesystem::path default_folder(const std::vector<Cell>& cells);
// Returns the folders of kResultsFolder, itself included, that hold a store; sorted.
[[nodiscard]] std::vector<std::filesystem::path> stores_here();
// Returns `asked`, or the only store there is. Throws ConfigError, which lists those that are there, where there are none or several, or
// where `asked` is a folder of stores.
[[nodiscard]] std::filesystem::path store_named(const std::string& command, const std::string& asked);

[[nodiscard]] std::filesystem::path checkpoint_folder(const std::string& out);
// Where state that pages lies: the folder that the user chose, or that of the checkpoints.
[[nodiscard]] std::filesystem::path pages_folder(const StudyArguments& arguments, const std::filesystem::path& checkpoints);

// The option --state-memory and what it means; "" = no bound. Throws ConfigError.
void add_state_memory_option(CLI::App& command, std::string& memory);
[[nodiscard]] StatePaging paging_of(const std::string& memory, const std::string& folder);

// Throws ConfigError where the store holds some of the cells' runs as interrupted: their checkpoints would be lost if they began anew.
void refuse_begun_runs(const RunStore& store, const std::vector<Cell>& cells, const std::string& out);

[[nodiscard]] std::filesystem::path tuning_folder(const std::string& out);

// The runs at a time when `asked` is 0: as many as there are cores for, each with so many threads.
[[nodiscard]] int jobs_for(int asked, int threads);

// What a study's runs get of this machine.
struct MachineShare {
  int jobs = 1, threads = 1;
  std::uint64_t memory_bytes = 0;  // for all of them; 0 = no limit
  MemoryLimit data_memory = {};    // for one data set
  StatePaging paging{};            // of each run
};
// Finds out what the sweep leaves to tuning, in OUT/tuning, and says on stderr what was found. No thread may exist.
void tune(std::vector<Cell>& cells, const std::string& out, const std::string& data, const MachineShare& share, bool quiet);

}  // namespace fl
