// The watch that shows a study from a process of its own.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/study_watch.hpp"
#include "apps/fedbits/terminal.hpp"
#include "status/status_process.hpp"
#include "status/study_status.hpp"
#include "study/driver/study_title.hpp"

namespace fl {

namespace {

namespace event = net::study_event;

net::CellState state_of(RunStatus status) {
  switch (status) {
    case RunStatus::done: return net::CellState::done;
    case RunStatus::diverged: return net::CellState::diverged;
    case RunStatus::interrupted: return net::CellState::interrupted;
    case RunStatus::failed: return net::CellState::failed;
  }
  return net::CellState::failed;
}

class StudyShow final : public StudyWatch {
 public:
  StudyShow(std::string command, const Address& address, bool quiet)
      : command_(std::move(command)), process_({.host = address.host, .port = address.port}) {
    if (!quiet || address.port == 0) std::cerr << "status at " << status_url(address, process_.port()) << std::endl;
  }

  void stage(const std::string& text) override { process_.tell(event::stage(text)); }
  void begin_study(const std::vector<Cell>& cells, const std::vector<std::size_t>& pending, std::uint64_t workers,
                   const std::string& folder, const std::function<RunStatus(const Cell&)>& status) override {
    begin(cells, pending, workers, folder, status, "");
  }
  void begin_tuning(const std::string& purpose, const std::vector<Cell>& cells, const std::vector<std::size_t>& pending,
                    std::uint64_t workers, const std::string& folder) override {
    begin(
        cells, pending, workers, folder, [](const Cell&) { return RunStatus::done; }, purpose);
  }
  void began(std::size_t cell, std::uint64_t worker) override { process_.tell(event::began(cell, worker)); }
  // Rounds may be short, so a run is told of at most ten times a second.
  void reached(std::size_t cell, std::uint64_t round, double train_loss, double test_accuracy) override {
    const double now = steady_seconds();
    const auto [told, is_first] = told_s_.try_emplace(cell, now);
    if (!is_first && now - told->second < kEvery_s) return;
    told->second = now;
    process_.tell(event::reached(cell, round, train_loss, test_accuracy));
  }
  void ended(std::size_t cell, const RunRecord& record) override {
    told_s_.erase(cell);
    process_.tell(event::ended(cell, record));
  }
  void tick() override {
    if (process_.flush() || has_warned_) return;
    has_warned_ = true;
    spdlog::warn("the process that shows the status has ended; the runs go on");
  }
  void close(const std::string& outcome, const std::string& message) override { process_.tell(event::closed({outcome, message})); }

 private:
  static constexpr double kEvery_s = 0.1;

  void begin(const std::vector<Cell>& cells, const std::vector<std::size_t>& pending, std::uint64_t workers, const std::string& folder,
             const std::function<RunStatus(const Cell&)>& status, const std::string& purpose) {
    net::StudyShown study{.command = command_,
                          .name = cells.empty() ? "" : cells.front().scenario.name,
                          .folder = folder,
                          .workers = workers,
                          .purpose = purpose};
    std::vector<bool> is_pending(cells.size(), false);
    for (const std::size_t cell : pending) is_pending[cell] = true;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      study.titles.push_back(title_of(cells[i], i + 1, cells.size()));
      study.states.push_back(is_pending[i] ? net::CellState::pending : state_of(status(cells[i])));
      study.rounds.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(cells[i].scenario.rounds, 0)));
    }
    told_s_.clear();
    process_.tell(event::begun(study));
  }

  std::string command_;
  net::StatusProcess process_;
  std::map<std::size_t, double> told_s_;  // by cell: when its rounds were told last
  bool has_warned_ = false;
};

}  // namespace

std::unique_ptr<StudyWatch> watch_study(const std::string& command, const std::string& address, bool quiet) {
  if (address.empty()) return std::make_unique<StudyWatch>();
  return std::make_unique<StudyShow>(command, status_address(address), quiet);
}

}  // namespace fl
