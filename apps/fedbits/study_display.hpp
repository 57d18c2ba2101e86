// The display of a study on the terminal, which passes on what happens to the status page (--status) and to the log of events (--log-json).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/fedbits/json_log.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/study_watch.hpp"
#include "apps/fedbits/tuning_display.hpp"
#include "study/driver/simulation.hpp"

namespace fl {

// The runs of a study as one command shows them.
class RunsView {
 public:
  virtual ~RunsView() = default;
  virtual void begin(const Simulation& study, std::size_t pending, int workers) = 0;
  virtual void stored(std::size_t cell, const RunRecord& record) = 0;
  virtual void began(std::size_t cell, int worker) = 0;
  virtual void reached(std::size_t cell, const RunProgress& at) = 0;
  virtual void ended(std::size_t cell, const RunRecord& record) = 0;
  virtual void tick() = 0;
};

// Shows what all commands show alike, and passes on the rest.
class StudyDisplay final : public StudyEvents {
 public:
  // All of them outlive it.
  StudyDisplay(const StudyArguments& arguments, JsonLog& log, StudyWatch& watch, RunsView& view);

  void note(Note kind, const std::string& text) override;
  void preparing(const std::string& text) override { tell_of_preparation(text); }
  void tuning() override { watch_.stage("tuning"); }
  void begin_tuning(const std::string& purpose, const std::vector<Cell>& runs, const std::vector<std::size_t>& pending, int workers,
                    const std::string& folder) override;
  void end_tuning() override { tuning_.end(); }
  void begin(const Simulation& study, const std::vector<std::size_t>& pending, int workers) override;
  void stored(std::size_t cell, const RunRecord& record) override;
  void began(std::size_t cell, int worker) override;
  void reached(std::size_t cell, const RunProgress& at) override;
  void ended(std::size_t cell, const RunRecord& record) override;
  void tick() override;

 private:
  JsonLog& log_;
  StudyWatch& watch_;
  RunsView& view_;
  TuningDisplay tuning_;
  const Simulation* study_ = nullptr;
  std::map<std::size_t, std::uint64_t> logged_;  // by cell: the round that was logged last
};

// Returns how a command shows its progress on stderr.
[[nodiscard]] ProgressStyle style_of(const StudyArguments& arguments);

// Returns "loss 0.12  accuracy 0.9", without what was not measured.
[[nodiscard]] std::string progress_text(const RunProgress& at);

// Prints the comparison of several runs, with notes for the reader.
void print_comparison(const std::vector<RunRecord>& records, const std::string& folder);

// Plays a study under a display, which closes the log and the watch with the outcome. `play` returns the exit code.
int shown(const std::string& command, const StudyArguments& arguments, const std::function<int(JsonLog& log, StudyWatch& watch)>& play);

}  // namespace fl
