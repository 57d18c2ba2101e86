#include "study/results/verify.hpp"

#include "fl_core/config/error.hpp"
#include "fl_core/state/checkpoint.hpp"
#include "fl_core/state/page_file.hpp"
#include "scenarios/results/run_store.hpp"

namespace fl {

namespace fs = std::filesystem;

namespace {

std::string count_text(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

Verified verify_store(const fs::path& file, const fs::path& /*pages*/) {
  Verified verified;
  std::uint64_t runs = 0, rounds = 0;
  try {
    const RunStore store = RunStore::open(file, RunStore::Mode::read);
    verified.damage = store.structural_damage();
    std::vector<DamagedRun> damaged;
    for (const RunRecord& record : store.list(damaged)) try {
        rounds += store.rows(record.run).size();
        ++runs;
      } catch (const DamagedRunError& error) {
        damaged.push_back(error.damaged());
      }
    for (const DamagedRun& run : damaged) verified.damage.push_back(to_string(run));
  } catch (const StoreError& error) {
    verified.damage.emplace_back(error.what());
  }
  verified.summary = count_text(runs, "whole run") + ", " + count_text(rounds, "row") + " of rounds";
  return verified;
}

Verified verify_checkpoint(const fs::path& file, const fs::path& pages) {
  Verified verified{.summary = "", .damage = damage_of_checkpoint(file, pages)};
  try {
    CheckpointHeader header;
    peek_checkpoint(file, header, [](Archive&) {});
    verified.summary = "run " + header.run + " after round " + std::to_string(header.round);
    if (!header.pages.empty()) verified.summary += ", with the state of its clients in " + header.pages;
  } catch (const StoreError&) {
    // The damage is already recorded.
  }
  return verified;
}

// Checks that a page file is readable. Its checksums are in the checkpoint that names it.
Verified verify_page_file(const fs::path& file, const fs::path& /*pages*/) {
  Verified verified;
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error)
    verified.damage.push_back("cannot be read: " + error.message());
  else
    verified.summary = count_text(bytes, "byte") + " of client state, checked with the checkpoint that names it, if any";
  return verified;
}

Verifier verifier_of(const fs::path& file) {
  if (file.filename() == RunStore::kFileName) return verify_store;
  if (file.extension() == ".checkpoint") return verify_checkpoint;
  return owner_of_page_file(file).empty() ? nullptr : verify_page_file;
}

}  // namespace fl
