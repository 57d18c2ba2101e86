// The two ways to play the runs of a study: in turn, and in parallel.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/config/stop_token.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_store.hpp"
#include "study/driver/study_events.hpp"
#include "study/driver/study_settings.hpp"
#include "study/machine/machine_share.hpp"

namespace fl {

// A study whose runs are played. The settings and the cells outlive its players.
struct OpenStudy {
  const StudySettings& settings;
  const std::vector<Cell>& cells;
  const std::string& folder;  // of the results
  Device device = Device::cpu;
  const MachineShare& share;
};

// Surroundings of a player: where results go, who hears of them, and who asks to stop.
struct PlayRoom {
  RunStore& store;
  StudyEvents& events;
  const StopToken& stop;
  std::function<void(std::size_t cell, RunRecord& record)> describe;  // adds the machine and the plug-ins to a record
};

class CellPlayer {
 public:
  virtual ~CellPlayer() = default;
  // Builds every combination once. Throws the problems of all of them.
  virtual void check() = 0;
  // Returns how many runs are played at a time: as many as fit into memory. Call after check(). Throws ConfigError if not even one fits.
  [[nodiscard]] virtual int fit(const std::vector<std::size_t>& pending, StudyEvents& events) = 0;
  // Plays the pending cells and stores each run when it ends.
  virtual void play(const std::vector<std::size_t>& pending, const PlayRoom& room) = 0;
};

[[nodiscard]] std::unique_ptr<CellPlayer> player_in_turn(const OpenStudy& study);
[[nodiscard]] std::unique_ptr<CellPlayer> player_in_parallel(const OpenStudy& study);
// The part of the machine that each of them takes. A run in turn has the threads of all `jobs`; runs of tuning have one each.
[[nodiscard]] MachineShare share_in_turn(const StudySettings& settings, const PlayInTurn& play);
[[nodiscard]] MachineShare share_in_parallel(const StudySettings& settings, const PlayInParallel& play);
// Warns of each reason why clients of a study on a GPU train on the CPU.
void warn_of_training_on_cpu(const std::vector<std::string>& reasons, StudyEvents& events);

}  // namespace fl
