// Stores of artificial runs: a sweep whose curves, bits and endings a test chooses.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"

namespace fl::test {

// A run of a method at a level; the rounds are given as {bits up of the round, value}, from round 0 on, whose bits are 0.
struct MadeRun {
  std::string method, level;
  std::uint64_t seed = 1;
  RunStatus status = RunStatus::done;
  std::vector<std::pair<std::uint64_t, double>> rounds{};
  bool measures_clients = false;  // accuracies that rise as the value falls
  std::vector<AxisLabel> more_axes{};
  std::vector<AxisLabel> axes{};  // in the place of method and level, where given
  std::string checksum{};         // "" = a unique checksum
  std::uint64_t refused = 0;
  std::string scenario{};  // resolved
  std::vector<ResolvedConstant> constants{};
  std::uint64_t down_factor = 2;                // bits down of a round, in those up
  double round_s = kNotMeasured;                // simulated seconds of a round; no clock if it is not set
  double published_bits_factor = kNotMeasured;  // published bits of a round, of its exact ones; entropy bounds are half of these
};

// A folder of its own, taken away at the end, with a store in it.
class MadeStore {
 public:
  MadeStore() {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_study_XXXXXX").string();
    folder_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
    store_.emplace_back(RunStore::open(folder_, RunStore::Mode::create));
  }
  MadeStore(const MadeStore&) = delete;
  MadeStore& operator=(const MadeStore&) = delete;
  ~MadeStore() {
    store_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // f_gap is the value of each round.
  void add(const MadeRun& made) {
    RunRecord record{.run = "run" + std::to_string(++count_), .name = "made", .seed = made.seed, .status = made.status};
    record.axes = {{"partition.alpha", made.level}, {"compressor.up", made.method}};
    if (!made.axes.empty()) record.axes = made.axes;
    record.checksum = made.checksum;
    record.scenario = made.scenario;
    record.constants = made.constants;
    record.axes.insert(record.axes.end(), made.more_axes.begin(), made.more_axes.end());
    std::vector<RoundRow> rows;
    for (const auto& [bits, value] : made.rounds) {
      RoundRow row{.round = rows.size(), .clients = 2};
      row.bits_up = bits;
      row.bits_down = made.down_factor * bits;
      row.bits_up_published = made.published_bits_factor * static_cast<double>(bits);
      row.bits_up_entropy = row.bits_up_published / 2;
      row.simulated_s = made.round_s * static_cast<double>(row.round);
      row.f_gap = value;
      if (made.measures_clients) {
        row.client_accuracy_p50 = 1 / (1 + value);
        row.client_accuracy_mean = 0.95 * row.client_accuracy_p50;
        row.client_accuracy_p10 = 0.5 * row.client_accuracy_p50;
        row.client_accuracy_worst = 0.1 * row.client_accuracy_p50;
        row.client_accuracy_p90 = 0.5 + 0.5 * row.client_accuracy_p50;
      }
      record.bits_up += bits;
      record.bits_down += made.down_factor * bits;
      record.f_gap = value;
      rows.push_back(row);
    }
    if (!rows.empty()) rows.back().refused = made.refused;
    record.rounds = rows.empty() ? 0 : rows.size() - 1;
    store_.front().append(record, rows);
  }
  [[nodiscard]] const RunStore& store() const { return store_.front(); }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::vector<RunStore> store_;
  int count_ = 0;
};

}  // namespace fl::test
