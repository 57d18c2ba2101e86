#include "study/driver/tuning_report.hpp"

#include <cmath>

#include "scenarios/results/end_point.hpp"
#include "study/output/numbers.hpp"
#include "study/results/store_folders.hpp"

namespace fl {

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

// Passes the batches of tuning on to the study's events.
class Batches final : public TuningObserver {
 public:
  Batches(StudyEvents& events, std::string folder) : events_(events), folder_(std::move(folder)) {}

  [[nodiscard]] SweepEvents begin(const std::string& purpose, const std::vector<Cell>& runs, const std::vector<std::size_t>& pending,
                                  int workers) override {
    events_.begin_tuning(purpose, runs, pending, workers, folder_);
    return {.started = [this](std::size_t cell, int worker) { events_.began(cell, worker); },
            .progress = [this](std::size_t cell, const RunProgress& at) { events_.reached(cell, at); },
            .ended = [this](std::size_t cell, const RunRecord& record) { events_.ended(cell, record); },
            .tick = [this] { events_.tick(); },
            .stop = {},
            .describe = {}};
  }
  void end() override { events_.end_tuning(); }

 private:
  StudyEvents& events_;
  const std::string folder_;
};

}  // namespace

void tune_study(std::vector<Cell>& cells, const std::string& out, const std::string& data, const MachineShare& share, StudyEvents& events,
                const StopToken& stop) {
  Batches batches(events, tuning_folder(out).string());
  const TuningMachine machine{.workers = share.jobs,
                              .kind = share.workers,
                              .threads = share.threads,
                              .memory_bytes = share.memory_bytes,
                              .store = tuning_folder(out),
                              .paging = share.paging,
                              .note = [&events](const std::string& line) { events.note(Note::tuning, line); },
                              .stop = stop,
                              .observer = &batches};
  for (const TunedOption& tuned : tune_cells(cells, DataCatalog(data, share.data_memory), machine)) {
    const std::string line = text_of(tuned);
    events.note(Note::tuning, line);
    if (const std::string warning = warning_of(tuned); !warning.empty()) events.note(Note::warning, line + ": " + warning);
  }
}

}  // namespace fl
