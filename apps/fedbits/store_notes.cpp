#include "apps/fedbits/store_notes.hpp"

#include <spdlog/spdlog.h>

#include <iostream>

#include "study/results/damaged_runs.hpp"

namespace fl {

int tell_damaged(const std::string& store, const std::vector<DamagedRun>& damaged) {
  if (damaged.empty()) return 0;
  for (const DamagedRun& run : damaged) std::cerr << store << ": " << to_string(run) << '\n';
  std::cerr << store << ": damaged runs are left out; `fedbits run` or `fedbits sweep --resume` with their scenario repeats them\n";
  return 1;
}

void tell_rescue(const RunStore& store) {
  for (const std::string& note : rescue_notes(store)) spdlog::warn("{}", note);
}

void tell_departures(const PlannedOptions& options) {
  for (const std::string& departure : options.departures) std::cerr << "NOT AS PLANNED: " << departure << '\n';
}

void tell_written(const std::string& what, const std::vector<std::filesystem::path>& paths) {
  std::string names;
  std::error_code ignored;
  for (const std::filesystem::path& path : paths)
    if (!path.native().starts_with("/dev/") && std::filesystem::is_regular_file(path, ignored))
      names += (names.empty() ? "" : " and ") + path.string();
  if (!names.empty()) std::cerr << what << " written to " << names << '\n';
}

}  // namespace fl
