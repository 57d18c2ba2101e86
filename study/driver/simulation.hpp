// Plays a study: the runs of a scenario file, one after another or several at a time, and stores them. This is the simulator for programs.
//
// Nothing in it prints, logs, reads options or catches signals. Several simulations of one process, each in a thread of its own, run, stop
// and fail apart. Errors name settings as the options of the command line do: "--state-memory" is StudySettings::state_memory.
//
//   fl::StudyEvents nobody;
//   fl::Simulation study = fl::Simulation::open({.file = "quickstart.toml", .out = "results"});
//   for (const fl::RunRecord& run : study.run(nobody).records)
//     for (const fl::RoundRow& row : study.store().rows(run.run)) std::cout << row.round << ' ' << row.train_loss << '\n';
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/config/stop_token.hpp"
#include "scenarios/results/run_store.hpp"
#include "study/driver/study_events.hpp"
#include "study/driver/study_settings.hpp"

namespace fl {

enum class StudyEnd {
  done,                 // every run is done
  incomplete,           // some runs failed or diverged
  stopped,              // on request; the rest can be resumed
  stopped_while_tuning  // on request; values that were found are kept
};

struct StudyOutcome {
  StudyEnd end = StudyEnd::done;
  std::vector<RunRecord> records{};  // of the runs that the store holds, in the order of the cells
};

class DataCatalog;
// Reads the runs of the scenario. With a catalog, data sets and files that are not there are problems. Throws ConfigError with all
// problems.
[[nodiscard]] FL_API std::vector<Cell> cells_of(const StudySettings& settings, const DataCatalog* catalog);

class FL_API Simulation {
 public:
  // Reads the scenario and loads its plug-ins. Throws ConfigError with all problems, DataError, DeviceError.
  [[nodiscard]] static Simulation open(StudySettings settings);
  Simulation(Simulation&&) noexcept;
  Simulation& operator=(Simulation&&) noexcept;
  ~Simulation();

  // Returns the runs, in order. Where values are tuned, they have those of the file until run() has found others.
  [[nodiscard]] const std::vector<Cell>& cells() const;
  [[nodiscard]] std::size_t size() const;
  // Returns the hash of a run in the store, its number of rounds, and "name 3/12  alpha=0.1  top-1%".
  [[nodiscard]] std::string hash(std::size_t cell) const;
  [[nodiscard]] std::uint64_t rounds(std::size_t cell) const;
  [[nodiscard]] std::string title(std::size_t cell) const;
  // Returns the folder of the results.
  [[nodiscard]] const std::string& folder() const;
  // Returns the store of the results; only after run() has begun.
  [[nodiscard]] const RunStore& store() const;

  // Builds every combination of the sweep once and discards it. Throws ConfigError with the problems of all of them; writes nothing.
  void check();
  // Plays and stores the runs that are not stored, in this order of steps: check() is done, the store is opened, values are tuned and
  // checked, the runs to play are chosen, as many as fit into memory are played. Throws ConfigError and StoreError before the first round,
  // Stopped if it is asked to stop before that, NotStoredError if a result cannot be written; results that are stored stay.
  StudyOutcome run(StudyEvents& events, const StopToken& stop = {});

 private:
  struct Impl;
  explicit Simulation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl
