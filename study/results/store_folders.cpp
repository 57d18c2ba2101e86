#include "study/results/store_folders.hpp"

#include <algorithm>
#include <cctype>
#include <system_error>

#include "fl_core/config/error.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/file/analysis_plan.hpp"

namespace fl {

namespace fs = std::filesystem;

fs::path default_folder(const std::vector<Cell>& cells) {
  std::string name = cells.front().scenario.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-' && c != '_') c = '-';
  if (name.find_first_not_of('.') == std::string::npos) name = "unnamed";  // "." and ".." are other folders
  return fs::path(kResultsFolder) / name;
}

namespace {

// Returns `folder` and the folders in it that hold a store, without stores of tuning runs.
std::vector<fs::path> stores_below(const fs::path& folder) {
  std::vector<fs::path> stores;
  std::error_code ignored;
  if (fs::exists(folder / RunStore::kFileName, ignored)) stores.push_back(folder);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename() != "tuning" && fs::exists(entry.path() / RunStore::kFileName, ignored)) stores.push_back(entry.path());
  std::ranges::sort(stores);
  return stores;
}

}  // namespace

std::vector<fs::path> stores_here() { return stores_below(kResultsFolder); }

fs::path store_named(const std::string& command, const std::string& asked) {
  std::error_code ignored;
  if (!asked.empty() && (!fs::is_directory(asked, ignored) || fs::exists(fs::path(asked) / RunStore::kFileName, ignored))) return asked;
  const std::vector<fs::path> stores = stores_below(asked.empty() ? kResultsFolder : asked);
  if (asked.empty() && stores.size() == 1) return stores.front();
  if (stores.empty())
    throw ConfigError(command + ": " +
                      (asked.empty() ? "there is no store in " + std::string(kResultsFolder) : asked + " holds no results") +
                      "; `fedbits run FILE` makes one, and --out of `run` and `sweep` chooses its folder");
  std::string list;
  for (const fs::path& store : stores) list += "\n  " + store.string();
  throw ConfigError(command + ": name the folder of one store; there are" + list);
}

std::filesystem::path tuning_folder(const std::string& out) { return std::filesystem::path(out) / "tuning"; }
std::filesystem::path checkpoint_folder(const std::string& out) { return std::filesystem::path(out) / "checkpoints"; }

std::string shard_folder(const std::string& out, const std::optional<SweepShard>& shard) {
  if (!shard || shard->count == 1) return out;
  return (fs::path(out) / ("shard-" + std::to_string(shard->index) + "-of-" + std::to_string(shard->count))).string();
}

bool has_whole(const RunStore& store, const std::string& run, const std::function<void(const std::string&)>& warn) {
  if (store.has_finished(run)) return true;
  if (const std::optional<DamagedRun> damaged = store.damage_of(run))
    warn(store.file().string() + ": " + to_string(*damaged) + "; it is repeated");
  return false;
}

void refuse_begun_runs(const RunStore& store, const std::vector<Cell>& cells, const std::string& out) {
  const auto begun = std::ranges::count_if(cells, [&](const Cell& cell) {
    const std::string run = to_hex(cell.hash);
    if (store.has_finished(run)) return false;
    return store.holds(run) ? store.record(run).status == RunStatus::interrupted
                            : std::filesystem::exists(checkpoint_folder(out) / (run + ".checkpoint"));
  });
  if (begun == 0) return;
  if (cells.size() == 1) throw ConfigError(out + " holds this run unfinished: --resume continues it, --again starts it anew");
  throw ConfigError(out + " holds " + std::to_string(begun) + " of the " + std::to_string(cells.size()) +
                    " runs unfinished: --resume continues them, --again starts all of them anew");
}

void refuse_other_plan(const RunStore& store, const std::vector<Cell>& cells) {
  if (cells.empty()) return;
  std::vector<DamagedRun> damaged;
  std::vector<RunRecord> stored = store.list(damaged);
  std::erase_if(stored, [&](const RunRecord& record) { return record.name != cells.front().scenario.name; });
  refuse_changed_plan(stored, plan_hash({.constants = cells.front().found}));
}

}  // namespace fl
