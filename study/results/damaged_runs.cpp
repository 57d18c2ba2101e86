#include "study/results/damaged_runs.hpp"

#include <algorithm>
#include <set>

namespace fl {

std::vector<RunRecord> list_whole(const RunStore& store, std::vector<DamagedRun>& damaged) {
  std::vector<DamagedRun> found;
  std::vector<RunRecord> records = store.list(found);
  std::set<std::string> known;
  for (const DamagedRun& run : damaged) known.insert(to_string(run));
  for (DamagedRun& run : found)
    if (known.insert(to_string(run)).second) damaged.push_back(std::move(run));
  std::set<std::string> left_out;
  for (const DamagedRun& run : damaged) left_out.insert(run.run);
  std::erase_if(records, [&left_out](const RunRecord& record) { return left_out.contains(record.run); });
  return records;
}

std::optional<std::vector<RoundRow>> whole_rows(const RunStore& store, const std::string& run, std::vector<DamagedRun>& damaged) {
  try {
    return store.rows(run);
  } catch (const DamagedRunError& error) {
    damaged.push_back(error.damaged());
    return std::nullopt;
  }
}

std::vector<std::string> rescue_notes(const RunStore& store) {
  const std::optional<Rescue>& rescue = store.rescue();
  if (!rescue) return {};
  std::vector<std::string> notes{store.file().string() + " is damaged (" + rescue->why + "): its " + std::to_string(rescue->num_whole) +
                                 " whole runs are kept in a new file, and the damaged one as " + rescue->kept.string()};
  for (const DamagedRun& run : rescue->damaged) notes.push_back(to_string(run));
  return notes;
}

}  // namespace fl
