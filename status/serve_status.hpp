// The status of `fedbits serve` while its runs are played: a value that round events fill, as JSON for the page and as metrics.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "net/server/peer_hub.hpp"
#include "scenarios/results/run_record.hpp"
#include "status/run_curve.hpp"

namespace fl::net {

// A run that begins.
struct RunShown {
  std::string run{}, title{};  // hash, and the scenario with its labels
  std::uint64_t seed = 0, rounds = 0, clients = 0;
};

// The end of all runs.
struct StatusEnd {
  std::string outcome{}, message{};  // done, failed or interrupted; the reason of a failure
};

// The run that is played, or was last.
struct PlayedRun {
  RunShown run{};
  bool is_open = false;
  std::uint64_t rows = 0, round = 0, cohort = 0, refused = 0, bits_up = 0, bits_down = 0;
  double train_loss = kNotMeasured, test_accuracy = kNotMeasured;
  double row_s = 0;  // when the last row came
  RunCurve curve{};
};

// Totals over all runs.
struct ServeTotals {
  std::uint64_t runs = 0, rounds = 0;  // of the scenario
  std::uint64_t ended = 0, rounds_ended = 0, rounds_closed = 0, rounds_timed = 0;
  std::uint64_t bits_up = 0, bits_down = 0;
  double timed_s = 0;  // for rounds_timed
  std::map<std::string, std::uint64_t> ended_as{};
};

// Times are seconds since any moment; they do not decrease.
class FL_API ServeStatus {
 public:
  static constexpr std::size_t kMostPeers = 1000, kMostRuns = 100, kMostText = 300;  // shown of a list, and characters of a text

  // A scenario with this many runs, which have this many rounds together.
  ServeStatus(std::string scenario, std::uint64_t runs, std::uint64_t rounds, double now_s);
  void begin(const RunShown& run, double now_s);
  void add(const RoundRow& row, double now_s);
  // Ends a run, or counts one whose result is stored already.
  void end(const RunRecord& record, double now_s);
  void see(std::vector<PeerFacts> peers, WireCounts counts);
  void close(const StatusEnd& end, double now_s);

  [[nodiscard]] std::string json(double now_s) const;
  [[nodiscard]] std::string metrics(double now_s) const;
  [[nodiscard]] const char* phase() const;

  // Returns "10 of 20 clients are hosted" while a run waits for peers, else "".
  [[nodiscard]] std::string waiting() const;

 private:
  [[nodiscard]] double seconds_left() const;

  std::string scenario_;
  double began_s_, ended_s_ = 0;
  ServeTotals totals_;
  PlayedRun playing_;
  std::vector<RunRecord> ended_;  // the last ones, without their scenario's text
  std::vector<PeerFacts> peers_;
  WireCounts counts_;
  StatusEnd end_;
};

// Returns at most ServeStatus::kMostText characters of a text, with an ellipsis for the rest.
[[nodiscard]] FL_API std::string shortened(const std::string& text);

}  // namespace fl::net
