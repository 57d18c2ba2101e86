// Any bytes are treated as a results.sqlite from an untrusted source, which is verified and merged into an empty store. Its whole runs
// arrive there; everything else is named as damaged or rejected with StoreError.
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "tests/fuzz/scratch_folder.hpp"

namespace {

namespace fs = std::filesystem;

// Copies whole runs as `fedbits merge` does. Returns how many there are.
std::size_t merge_whole_runs(const fl::RunStore& source, fl::RunStore& target) {
  std::vector<fl::DamagedRun> damaged;
  std::size_t whole = 0;
  for (const fl::RunRecord& record : source.list(damaged)) {
    try {
      const std::vector<fl::RoundRow> rows = source.rows(record.run);
      target.append(record, rows);
      ++whole;
    } catch (const fl::DamagedRunError& error) {
      damaged.push_back(error.damaged());
    }
  }
  for (const fl::DamagedRun& run : damaged) fl::fuzz::require(!to_string(run).empty(), "damage without a word");
  return whole;
}

void store_merge(std::span<const std::byte> bytes) {
  static const fl::fuzz::ScratchFolder folder;
  const fs::path place = folder.fresh("source");
  std::ofstream(place / fl::RunStore::kFileName, std::ios::binary) << fl::fuzz::as_text(bytes);
  try {
    const fl::RunStore source = fl::RunStore::open(place, fl::RunStore::Mode::read);
    (void)source.structural_damage();
    fl::RunStore target = fl::RunStore::open(folder.fresh("target"), fl::RunStore::Mode::create);
    const std::size_t whole = merge_whole_runs(source, target);
    fl::fuzz::require(target.list().size() == whole, "a merged run has not arrived");
    for (const fl::RunRecord& record : target.list()) fl::fuzz::require(!target.damage_of(record.run), "a merged run is damaged");
    fl::fuzz::require(target.structural_damage().empty(), "the merged store is damaged");
  } catch (const fl::StoreError&) {
  }
}

const fl::fuzz::Register kStoreMerge("store_merge", store_merge);

}  // namespace
