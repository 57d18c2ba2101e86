// `fedbits run FILE`: runs every cell of a scenario file, with one line each in their order. Stored cells are shown and not repeated.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/comparison.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/study_display.hpp"
#include "scenarios/file/measure_set.hpp"

namespace fl {

namespace {

// Shows runs one after another, and prints their closing lines in the order of the cells.
class RunsInTurn final : public RunsView {
 public:
  RunsInTurn(const StudyArguments& arguments, JsonLog& log)
      : arguments_(arguments), log_(log), progress_(std::cerr, style_of(arguments), stderr_width()) {}

  void begin(const Simulation& study, std::size_t, int) override {
    study_ = &study;
    lines_.resize(study.size());
  }
  // Its measured rounds are logged as those of a run that is played.
  void stored(std::size_t cell, const RunRecord& record) override {
    for (const RoundRow& row : study_->store().rows(record.run)) log_.progress(record.run, row, record.columns);
    add_line(cell, record);
  }
  void began(std::size_t cell, int) override { progress_.begin(study_->title(cell), study_->rounds(cell)); }
  void reached(std::size_t, const RunProgress& at) override {
    if (at.round > 0) progress_.update(at.round, [&at] { return progress_text(at); });
  }
  void ended(std::size_t cell, const RunRecord& record) override {
    progress_.finish();
    add_line(cell, record);
  }
  void tick() override {}
  // Prints the lines of runs that a request to stop has separated from those before them.
  void end() {
    progress_.finish();
    for (std::optional<std::string>& line : lines_)
      if (line) print_line(*std::exchange(line, std::nullopt));
  }

 private:
  void add_line(std::size_t cell, const RunRecord& record) {
    const bool is_said = study_->size() == 1 || record.status != RunStatus::done || arguments_.verbose > 0;
    lines_[cell] = is_said ? closing_line(record, hashes_of(arguments_)) : "";
    for (; printed_ < lines_.size() && lines_[printed_]; ++printed_) print_line(*std::exchange(lines_[printed_], std::nullopt));
  }
  void print_line(const std::string& line) const {
    if (!line.empty() && !arguments_.quiet) std::cout << line << std::endl;
  }

  const StudyArguments& arguments_;
  JsonLog& log_;
  const Simulation* study_ = nullptr;
  Progress progress_;
  std::vector<std::optional<std::string>> lines_;  // by cell: those that are to be printed; "" for a run that is not told of
  std::size_t printed_ = 0;
};

// Prints a comparison, or the notes of a single run. Returns the exit code.
int conclude(const StudyOutcome& outcome, const StudyArguments& arguments, const std::string& folder) {
  const bool is_done = outcome.end == StudyEnd::done;
  if (!arguments.quiet && outcome.records.size() > 1) {
    if (arguments.verbose > 0 || !is_done) std::cout << '\n';
    print_comparison(outcome.records, folder);
  }
  if (!arguments.quiet && outcome.records.size() == 1) std::cout << missing_minima_note(outcome.records);
  if (caught_signal() != 0) return exit_code_of(caught_signal());
  return is_done ? 0 : 1;
}

int run(StudyArguments arguments) {
  std::get<PlayInTurn>(arguments.play).tells_times = arguments.verbose > 0;
  return shown("run", arguments, [&arguments](JsonLog& log, StudyWatch& watch) {
    RunsInTurn view(arguments, log);
    StudyDisplay display(arguments, log, watch, view);
    Simulation study = Simulation::open(arguments);
    const StudyOutcome outcome = study.run(display, stop_token());
    view.end();
    return conclude(outcome, arguments, study.folder());
  });
}

}  // namespace

void add_run_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<StudyArguments>();
  PlayInTurn& play = std::get<PlayInTurn>(arguments->play);
  CLI::App* command = app.add_subcommand("run", "run every cell of a scenario file; stored results are shown, not repeated");
  add_study_options(*command, *arguments);
  command->add_option("--threads", play.threads, "threads (default: the cores that this process may use); results do not depend on it")
      ->check(CLI::Range(1, 4096));
  command->add_option("--block", play.block, "clients computed together (default: chosen); results do not depend on it");
  command
      ->add_option("--save-samples", play.samples,
                   "write the rows of every minibatch to this folder, as HASH.csv, which local.sample_file reads")
      ->excludes("--resume");
  command->add_flag("--materialise", play.materialise, "encode and decode every message instead of computing its length");
  command->footer("Example: fedbits run scenarios/library/quickstart.toml --set rounds=50 --out results");
  command->callback([arguments, guard] { guard([&] { return run(*arguments); }); });
}

}  // namespace fl
