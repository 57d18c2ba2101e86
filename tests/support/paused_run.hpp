// A small run that was stopped between two rounds, as bytes: its checkpoint and its page file. Tests can damage copies of either.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/state/checkpoint.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl::test {

class PausedRun {
 public:
  using Bytes = std::vector<char>;
  static constexpr std::uint64_t kStop = 5, kRounds = 9;

  // `memory_bytes` limits client state; 0 = all in memory, without a page file.
  explicit PausedRun(std::uint64_t memory_bytes) : runner_(DataCatalog(""), {.threads = 1, .paging = {.memory_bytes = memory_bytes}}) {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_paused_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder can be made");
    folder_ = name;
    plan_.file = folder_ / "run.checkpoint";
    whole_ = runner_.run(cell_, {}, {});
    (void)runner_.run(
        cell_, [](const RoundRow& row) { return row.round != kStop; }, plan_);
    plan_.resume = true;
    checkpoint = read(plan_.file);
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (!owner_of_page_file(entry.path()).empty()) pages_ = entry.path();
    if (!pages_.empty()) pages = read(pages_);
  }
  ~PausedRun() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  PausedRun(const PausedRun&) = delete;
  PausedRun& operator=(const PausedRun&) = delete;

  // Writes the files with these bytes.
  void put(std::span<const char> checkpoint_bytes, std::span<const char> page_bytes) const {
    std::ofstream(plan_.file, std::ios::binary).write(checkpoint_bytes.data(), static_cast<std::streamsize>(checkpoint_bytes.size()));
    if (!pages_.empty()) std::ofstream(pages_, std::ios::binary).write(page_bytes.data(), static_cast<std::streamsize>(page_bytes.size()));
  }
  // Continues from the files. Returns the reason if the run is rejected.
  [[nodiscard]] std::optional<std::string> refusal() {
    try {
      result_ = runner_.run(cell_, {}, plan_);
    } catch (const StoreError& error) {
      return error.what();
    }
    return std::nullopt;
  }
  // Returns whether the continued run ended like the one that was never stopped.
  [[nodiscard]] bool is_same() const {
    return result_.record.checksum == whole_.record.checksum && result_.record.bits_up == whole_.record.bits_up &&
           result_.record.bits_down == whole_.record.bits_down && std::ranges::equal(result_.rows, whole_.rows, same_bits);
  }
  // Returns the damage that `fedbits verify` reports.
  [[nodiscard]] std::vector<std::string> damage() const { return damage_of_checkpoint(plan_.file); }
  // Sets the checkpoint's checksum to that of its bytes.
  static void seal(Bytes& bytes) {
    if (bytes.size() < sizeof(std::uint64_t)) return;
    const std::uint64_t checksum = hash64_of(std::as_bytes(std::span(bytes).first(bytes.size() - sizeof checksum)));
    std::memcpy(bytes.data() + bytes.size() - sizeof checksum, &checksum, sizeof checksum);
  }

  Bytes checkpoint, pages;

 private:
  static Bytes read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static constexpr const char* kText =
      "name = 'paused'\nrounds = 9\nprecision = 'float32'\n[data]\nname = 'mushrooms'\nrows = 200\n[partition]\nkind = 'shuffled'\n"
      "clients = 24\n[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[local]\nbatch = 2\nlearning_rate = 0.05\n[participation]\n"
      "kind = 'uniform'\nclients = 4\n[compressor.up]\nkind = 'top_k'\nk = 5\n[compressor.down]\nkind = 'top_k'\nk = 20\n[feedback.up]\n"
      "kind = 'ef14'\n[server]\nkind = 'sgd'\nmomentum = 0.9\n[evaluate]\nevery = 1\noptimum = false\ngradient = 'start'\n";

  Cell cell_ = parse_cells(kText, "paused.toml").at(0);
  CellRunner runner_;
  std::filesystem::path folder_, pages_;
  CheckpointPlan plan_;
  RunResult whole_, result_;
};

}  // namespace fl::test
