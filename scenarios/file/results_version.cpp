#include "scenarios/file/results_version.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace fl {

namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Returns whether the corrections of number 3 move the results of a resolved scenario.
bool is_touched_by_3(const std::string& resolved) {
  if (has(resolved, "kind = \"terngrad\"")) return true;
  if (!has(resolved, "kind = \"three_pc\"")) return false;
  const bool has_trigger = has(resolved, "variant = \"clag\"") || has(resolved, "variant = \"adacgd\"");
  return has(resolved, "variant = \"lag\"") || (has_trigger && has(resolved, "\n[compressor.up]\nkind = \"identity\""));
}

}  // namespace

std::int64_t results_version_for(const std::string& resolved_toml) {
  return is_touched_by_3(resolved_toml) ? kResultsVersion : kLeastResultsVersion;
}

std::string with_results_version(std::string resolved_toml) {
  const std::string start = std::string(kResultsVersionKey) + " = ";
  const std::size_t at = resolved_toml.find(start);
  if (at == std::string::npos) return resolved_toml;
  const std::size_t begin = at + start.size(), end = resolved_toml.find('\n', begin);
  const std::string number = std::to_string(results_version_for(resolved_toml));
  return resolved_toml.replace(begin, end - begin, number);
}

// The key stands alone on its line, above the first table, as to_toml writes it.
std::int64_t results_version_of(const std::string& resolved_toml) {
  constexpr std::int64_t kBeforeTheKey = 1;
  if (resolved_toml.empty()) return kLeastResultsVersion;
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
    const bool is_other = version != results_version_for(record.scenario);
    if (is_other) ++removed[version];
    return is_other;
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
  return to_string(versions) + " left out: another version of fedbits made them, and this one gives other results for their scenarios (" +
         kResultsVersionKey + " up to " + std::to_string(kResultsVersion) + "); `run` and `sweep` repeat them";
}

}  // namespace fl
