// Plays the runs of a study one after another. Small ones are played ahead of their turn.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "clients/learning/gradient_failure.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/memory/usable_cores.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/results/measured_row.hpp"
#include "scenarios/results/number_text.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "scenarios/sweep/sweep_runner.hpp"
#include "study/driver/cell_player.hpp"
#include "study/driver/cells_ahead.hpp"
#include "study/results/store_folders.hpp"

namespace fl {

namespace {

// Returns the distribution of time within the rounds.
std::string text_of(const RoundTimes& times, int threads) {
  const auto share = [&](double seconds) { return short_text(100 * seconds / times.total_s) + "%"; };
  const auto of_threads = [&](double seconds) { return share(seconds / static_cast<double>(threads)); };
  return std::to_string(times.rounds) + " rounds in " + short_text(times.total_s) + " s: training " + of_threads(times.train_s) +
         ", compression " + of_threads(times.compress_s) + ", aggregation " + share(times.aggregate_s) + ", evaluation " +
         share(times.evaluate_s) + ", waiting threads " + share(times.waiting_s(threads)) + ", the rest " + share(times.rest_s());
}

class PlayerInTurn final : public CellPlayer {
 public:
  explicit PlayerInTurn(const OpenStudy& study)
      : study_(study),
        play_(std::get<PlayInTurn>(study.settings.play)),
        cache_(std::make_shared<ProblemCache>(DataCatalog(study.settings.data))),
        in_turn_(make(study.share.jobs)) {}

  void check() override {
    std::vector<const Cell*> all;
    for (const Cell& cell : study_.cells) all.push_back(&cell);
    for (const CellNeed& need : in_turn_->runner->check(all)) {
      largest_bytes_ = std::max<std::uint64_t>(largest_bytes_, need.bytes);
      trains_on_cpu_.insert(need.device.trains_on_cpu.begin(), need.device.trains_on_cpu.end());
    }
  }

  [[nodiscard]] int fit(const std::vector<std::size_t>&, StudyEvents& events) override {
    if (study_.device != Device::cpu) warn_of_training_on_cpu({trains_on_cpu_.begin(), trains_on_cpu_.end()}, events);
    return 1;
  }

  void play(const std::vector<std::size_t>& pending, const PlayRoom& room) override {
    play_ahead(pending);
    for (const std::size_t cell : pending) {
      if (!goes_on(cell, room.stop)) continue;
      try {
        play_cell(cell, room);
      } catch (const Stopped&) {
        continue;  // those that have begun still end
      } catch (const NotStoredError&) {
        throw;
      } catch (const StoreError& error) {  // of the model's file, after a run
        throw NotStoredError(error.what());
      }
    }
  }

 private:
  // A runner with the times of its rounds.
  struct One {
    RoundTimes times;
    std::unique_ptr<CellRunner> runner;
  };

  [[nodiscard]] std::unique_ptr<One> make(int threads) const {
    auto one = std::make_unique<One>();
    one->runner = std::make_unique<CellRunner>(cache_, MachineOptions{.threads = threads,
                                                                      .block = play_.block,
                                                                      .materialise = play_.materialise,
                                                                      .device = study_.device,
                                                                      .paging = study_.share.paging,
                                                                      .models = study_.settings.models,
                                                                      .samples = play_.samples,
                                                                      .times = play_.tells_times ? &one->times : nullptr});
    return one;
  }

  // Plays pending cells ahead if they are small. A GPU, a bound on the memory of state and files of samples are for one cell at a time.
  void play_ahead(const std::vector<std::size_t>& pending) {
    if (study_.device != Device::cpu || study_.share.paging.memory_bytes != 0 || !play_.samples.empty()) return;
    const CellShare share = share_of_cells(study_.share.jobs, pending.size(), largest_bytes_);
    if (share.cells < 2) return;
    for (int worker = 0; worker < share.cells; ++worker) workers_.push_back(make(share.threads));
    ahead_ = std::make_unique<CellsAhead>(pending, share.cells, [this](std::size_t cell, int worker, const RoundCallback& callback) {
      return play_with(*workers_[static_cast<std::size_t>(worker)], cell, callback);
    });
  }

  // Returns whether a cell is to be run: after a request to stop, only those that have begun, which end as interrupted.
  [[nodiscard]] bool goes_on(std::size_t cell, const StopToken& stop) {
    return !stop.is_asked() || (ahead_ != nullptr && ahead_->has_begun(cell));
  }

  void play_cell(std::size_t number, const PlayRoom& room) {
    const Cell& cell = study_.cells[number];
    room.events.began(number, 0);
    RunProgress progress;
    const auto show = [&](const RoundRow& row) {
      progress.round = row.round;
      if (!std::isnan(row.train_loss)) progress.train_loss = row.train_loss;
      if (!std::isnan(row.test_accuracy)) progress.test_accuracy = row.test_accuracy;
      progress.has_measured = is_measured(row);
      if (progress.has_measured) progress.measured = row;
      room.events.reached(number, progress);
      return !room.stop.is_asked();
    };
    auto [result, times] = [&] {
      try {
        return take(number, show, room.stop);
      } catch (const GradientFailure& failure) {  // of a model that is not the simulator's own
        room.store.append(failed_record(cell, failure.what()), {});
        throw;
      }
    }();
    if (times.rounds > 0)
      room.events.note(Note::detail, to_hex(cell.hash) + ": " + text_of(times, static_cast<int>(result.record.threads)));
    room.describe(number, result.record);
    room.store.append(result.record, result.rows);
    if (is_finished(result.record.status)) remove_checkpoint(checkpoint_of(cell));
    room.events.ended(number, result.record);
  }

  [[nodiscard]] CellsAhead::Played take(std::size_t cell, const RoundCallback& show, const StopToken& stop) {
    if (ahead_ != nullptr && stop.is_asked()) ahead_->stop();
    return ahead_ != nullptr && ahead_->has(cell) ? ahead_->take(cell, show) : play_with(*in_turn_, cell, show);
  }
  [[nodiscard]] CellsAhead::Played play_with(One& one, std::size_t cell, const RoundCallback& callback) const {
    one.times = {};
    RunResult result = one.runner->run(study_.cells[cell], callback, checkpoint_of(study_.cells[cell]));
    return {std::move(result), one.times};
  }

  [[nodiscard]] CheckpointPlan checkpoint_of(const Cell& cell) const {
    const CheckpointSettings& checkpoints = study_.settings.checkpoints;
    return {.file = checkpoint_folder(study_.folder) / (to_hex(cell.hash) + ".checkpoint"),
            .every_rounds = checkpoints.rounds,
            .every_seconds = 60 * checkpoints.minutes,
            .resume = checkpoints.resume,
            .any_build = checkpoints.any_build,
            .pages = study_.settings.state_folder};
  }

  const OpenStudy study_;
  const PlayInTurn& play_;
  std::shared_ptr<ProblemCache> cache_;
  std::unique_ptr<One> in_turn_;
  std::uint64_t largest_bytes_ = 0;
  std::set<std::string> trains_on_cpu_;
  std::vector<std::unique_ptr<One>> workers_;
  std::unique_ptr<CellsAhead> ahead_;  // after the workers, whose runners it uses
};

}  // namespace

std::unique_ptr<CellPlayer> player_in_turn(const OpenStudy& study) { return std::make_unique<PlayerInTurn>(study); }

MachineShare share_in_turn(const StudySettings& settings, const PlayInTurn& play) {
  return {.jobs = play.threads > 0 ? play.threads : usable_cores(),
          .workers = settings.workers,
          .paging = paging_of(settings.state_memory, settings.state_folder)};
}

void warn_of_training_on_cpu(const std::vector<std::string>& reasons, StudyEvents& events) {
  for (const std::string& why : reasons)
    events.note(Note::warning, "clients train on the CPU, and their vectors are copied to the GPU: " + why);
}

}  // namespace fl
