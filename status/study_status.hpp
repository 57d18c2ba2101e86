// The status of a study while `fedbits sweep` or `fedbits run` plays it: a value that events fill, as JSON for the page and as metrics.
//
// A sweep forks its workers, so no thread may serve the status in its process (scenarios/sweep/process_pool.hpp). Events therefore travel
// to a process of their own (status/status_process.hpp), as the lines of JSON that study_event:: makes and apply() reads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/results/run_record.hpp"
#include "status/serve_status.hpp"

namespace fl::net {

enum class CellState { pending, running, done, diverged, failed, interrupted };
inline constexpr std::size_t kCellStates = 6;
[[nodiscard]] FL_API const char* to_string(CellState state);

// A study that begins: every run with its title and its state, which is that of the store for runs that are not repeated.
struct StudyShown {
  std::string command{}, name{}, folder{};
  std::uint64_t workers = 1;
  std::vector<std::string> titles{};
  std::vector<CellState> states{};
  std::vector<std::uint64_t> rounds{};  // of each run
  std::string purpose{};                // of runs of tuning: "comparing candidates"; "" = the study's own runs
};

namespace study_event {
[[nodiscard]] FL_API std::string stage(const std::string& text);  // what is done before runs begin: "tuning"
[[nodiscard]] FL_API std::string begun(const StudyShown& study);
[[nodiscard]] FL_API std::string began(std::size_t cell, std::uint64_t worker);
[[nodiscard]] FL_API std::string reached(std::size_t cell, std::uint64_t round, double train_loss, double test_accuracy);
[[nodiscard]] FL_API std::string ended(std::size_t cell, const RunRecord& record);
[[nodiscard]] FL_API std::string closed(const StatusEnd& end);
}  // namespace study_event

// A worker and the run that it plays, or has played last.
struct StudyWorker {
  bool is_busy = false;
  std::size_t cell = 0;
  std::uint64_t round = 0;
  double train_loss = kNotMeasured, test_accuracy = kNotMeasured;
};

struct EndedRun {
  std::size_t cell = 0;
  CellState state = CellState::done;
  std::uint64_t rounds = 0;
  double train_loss = kNotMeasured, test_accuracy = kNotMeasured, seconds = kNotMeasured;
  std::string message{};
};

struct StudyTotals {
  std::uint64_t ended = 0, rounds = 0, bits_up = 0, bits_down = 0;  // of runs that ended here
  double began_s = 0;                                               // when the first run could begin
};

// Times are seconds since any moment; they do not decrease.
class FL_API StudyStatus {
 public:
  static constexpr std::size_t kMostEnded = 60, kMostProblems = 60;

  explicit StudyStatus(double now_s) : began_s_(now_s) {}
  // Applies an event. Lines that are none change nothing.
  void apply(const std::string& line, double now_s);
  // Closes the study as failed if it has not been closed: the process that told of it has ended.
  void lose(double now_s);

  [[nodiscard]] std::string json(double now_s) const;
  [[nodiscard]] std::string titles_json() const;  // the titles of the runs, which do not change
  [[nodiscard]] std::string metrics(double now_s) const;
  [[nodiscard]] CellState state(std::size_t cell) const { return study_.states.at(cell); }
  // Returns NaN if it is unknown.
  [[nodiscard]] double seconds_left(double now_s) const;

 private:
  void take_begun(const std::string& line, double now_s);
  void take_ended(const EndedRun& ended, std::uint64_t bits_up, std::uint64_t bits_down);
  [[nodiscard]] std::array<std::uint64_t, kCellStates> count() const;
  [[nodiscard]] double rounds_of_workers() const;

  double began_s_, ended_s_ = 0;
  std::string stage_ = "preparing";
  std::uint64_t num_begun_ = 0;  // studies and batches of tuning
  StudyShown study_;
  std::uint64_t num_to_run_ = 0;
  std::vector<StudyWorker> workers_;
  std::vector<EndedRun> ended_, problems_;  // the last ones
  StudyTotals totals_;
  StatusEnd end_;
};

}  // namespace fl::net
