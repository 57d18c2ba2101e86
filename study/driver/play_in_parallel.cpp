// Plays several runs of a study at a time, in processes or threads.
#include <optional>
#include <utility>

#include "fl_core/config/error.hpp"
#include "scenarios/sweep/sweep_runner.hpp"
#include "study/driver/cell_player.hpp"
#include "study/machine/machine.hpp"
#include "study/machine/memory.hpp"
#include "study/results/store_folders.hpp"

namespace fl {

namespace {

SweepSettings sweep_settings(const OpenStudy& study) {
  const StudySettings& settings = study.settings;
  return {.workers = study.share.jobs,
          .kind = study.share.workers,
          .threads = study.share.threads,
          .device = study.device,
          .checkpoints = checkpoint_folder(study.folder),
          .checkpoint_every_rounds = settings.checkpoints.rounds,
          .checkpoint_every_seconds = 60 * settings.checkpoints.minutes,
          .resume = settings.checkpoints.resume,
          .any_build = settings.checkpoints.any_build,
          .paging = study.share.paging,
          .pages = settings.state_folder,
          .models = settings.models};
}

class PlayerInParallel final : public CellPlayer {
 public:
  explicit PlayerInParallel(const OpenStudy& study)
      : study_(study), runner_(study.cells, DataCatalog(study.settings.data, study.share.data_memory), sweep_settings(study)) {}

  void check() override { runner_.check(); }

  [[nodiscard]] int fit(const std::vector<std::size_t>& pending, StudyEvents& events) override {
    const int asked = study_.share.jobs;
    if (pending.empty()) return asked;
    const bool is_on_cpu = study_.device == Device::cpu;
    if (!is_on_cpu) warn_of_training_on_cpu(runner_.device_need().trains_on_cpu, events);
    const std::uint64_t bytes = is_on_cpu ? study_.share.memory_bytes : free_device_bytes();
    const int jobs = is_on_cpu ? runner_.fit(bytes) : runner_.fit_device(bytes);
    if (jobs < asked)
      events.note(Note::warning, std::to_string(bytes / 1000000) + " MB of " + (is_on_cpu ? "" : "the GPU's ") +
                                     "memory are enough for only " + std::to_string(jobs) + " of " + std::to_string(asked) +
                                     " runs at a time");
    return jobs;
  }

  void play(const std::vector<std::size_t>& pending, const PlayRoom& room) override {
    StudyEvents& events = room.events;
    runner_.run(pending, room.store,
                {.started = [&events](std::size_t cell, int worker) { events.began(cell, worker); },
                 .progress = [&events](std::size_t cell, const RunProgress& at) { events.reached(cell, at); },
                 .ended = [&events](std::size_t cell, const RunRecord& record) { events.ended(cell, record); },
                 .tick = [&events] { events.tick(); },
                 .stop = room.stop,
                 .describe = room.describe});
  }

 private:
  const OpenStudy study_;
  SweepRunner runner_;
};

}  // namespace

std::unique_ptr<CellPlayer> player_in_parallel(const OpenStudy& study) { return std::make_unique<PlayerInParallel>(study); }

MachineShare share_in_parallel(const StudySettings& settings, const PlayInParallel& play) {
  const std::uint64_t memory = play.memory.empty() ? available_memory_bytes() : parse_bytes("--memory", play.memory);
  return {.jobs = jobs_for(play.jobs, play.threads),
          .threads = play.threads,
          .workers = settings.workers,
          .memory_bytes = memory,
          .data_memory = {play.memory.empty() ? 0 : memory},
          .paging = paging_of(settings.state_memory, settings.state_folder)};
}

}  // namespace fl
