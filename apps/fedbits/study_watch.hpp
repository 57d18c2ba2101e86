// `--status [HOST:]PORT`: shows a study, or the runs of a server, to browsers and to Prometheus while it runs. docs/status.md describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/fedbits/address.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/results/run_record.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

struct TuningProgress;

// Adds the option --status.
void add_status_option(CLI::App& command, std::string& address);
// Returns the address of "8000" (on this machine), "127.0.0.1:8000" or "[::1]:8000". An address of other machines is warned of.
[[nodiscard]] Address status_address(const std::string& text);
// Returns the address of the page.
[[nodiscard]] std::string status_url(const Address& address, std::uint16_t port);

// Receives what happens in a study, in the order in which it happens. This class shows nothing.
class StudyWatch {
 public:
  StudyWatch() = default;
  virtual ~StudyWatch() = default;
  StudyWatch(const StudyWatch&) = delete;
  StudyWatch& operator=(const StudyWatch&) = delete;

  // Says what is done before runs begin.
  virtual void stage(const std::string&) {}
  // Says how far tuning has come.
  virtual void tuning(const TuningProgress&) {}
  // Begins a study with all its cells; `pending` are those that are going to run, and `status` says how a stored one has ended.
  virtual void begin_study(const std::vector<Cell>&, const std::vector<std::size_t>& /*pending*/, std::uint64_t /*workers*/,
                           const std::string& /*folder*/, const std::function<RunStatus(const Cell&)>& /*status*/) {}
  virtual void began(std::size_t /*cell*/, std::uint64_t /*worker*/) {}
  virtual void reached(std::size_t /*cell*/, std::uint64_t /*round*/, double /*train_loss*/, double /*test_accuracy*/) {}
  virtual void ended(std::size_t /*cell*/, const RunRecord&) {}
  // Sends what is pending. Never waits.
  virtual void tick() {}
  // Closes the study: done, failed or interrupted.
  virtual void close(const std::string& /*outcome*/, const std::string& /*message*/) {}
};

// Returns a watch that shows a study of `command` at the address, or one that shows nothing if the address is "". Forks a process, so no
// thread may exist. Throws ConfigError if this binary has no network.
[[nodiscard]] std::unique_ptr<StudyWatch> watch_study(const std::string& command, const std::string& address, bool quiet);

// Runs a command under a watch, and closes the watch with the outcome: that of the exit code, or the error that the command throws.
int watched(StudyWatch& watch, const std::function<int()>& command);

}  // namespace fl
