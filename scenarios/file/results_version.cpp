#include "scenarios/file/results_version.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace fl {

// The key stands alone on its line, above the first table, as to_toml writes it.
std::int64_t results_version_of(const std::string& resolved_toml) {
  constexpr std::int64_t kBeforeTheKey = 1;
  if (resolved_toml.empty()) return kResultsVersion;
  std::string_view text = resolved_toml;
  const std::string start = std::string(kResultsVersionKey) + " = ";
  while (!text.empty() && !text.starts_with('[')) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(start)) {
      std::int64_t version = kBeforeTheKey;
      std::from_chars(line.data() + start.size(), line.data() + line.size(), version);
      return version;
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return kBeforeTheKey;
}

ResultsVersions remove_other_results(std::vector<RunRecord>& records) {
  ResultsVersions removed;
  std::erase_if(records, [&removed](const RunRecord& record) {
    const std::int64_t version = results_version_of(record.scenario);
    if (version != kResultsVersion) ++removed[version];
    return version != kResultsVersion;
  });
  return removed;
}

std::string to_string(const ResultsVersions& versions) {
  std::string text;
  for (const auto& [version, count] : versions)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + (count == 1 ? " run" : " runs") + " with " + kResultsVersionKey + " " +
            std::to_string(version);
  return text;
}

std::string note_of_other_results(const ResultsVersions& versions) {
  if (versions.empty()) return "";
  return to_string(versions) + " left out: another version of fedbits made them, and this one, whose " + kResultsVersionKey + " is " +
         std::to_string(kResultsVersion) + ", gives other results; `run` and `sweep` repeat them";
}

}  // namespace fl
