#include "fl_core/config/error.hpp"

#include <algorithm>
#include <cctype>

#include "fl_core/config/meanings.hpp"

namespace fl {
namespace {

std::string joined(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& p : problems) {
    if (!text.empty()) text += '\n';
    text += p.where.empty() ? p.message : p.where + ": " + p.message;
  }
  return text;
}

// "Top-K" and "top_k" differ in habit, not in meaning.
std::string folded(const std::string& name) {
  std::string result = name;
  for (char& c : result) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal string alignment).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

}  // namespace

ConfigError::ConfigError(std::vector<Problem> problems) : Error(joined(problems)), problems_(std::move(problems)) {}

ConfigError::ConfigError(const std::string& message) : Error(message), problems_{Problem{"", message}} {}

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestName = 100;  // nothing longer is a slip of the fingers, and the distance costs its square
  if (name.empty() || name.size() > kLongestName) return "";
  if (std::string meant = meant_value(name, candidates); !meant.empty()) return meant;
  const std::string wanted = folded(name);
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, folded(candidate));
    const std::size_t allowed = (std::min(name.size(), candidate.size()) + 2) / 3;
    if (distance <= allowed && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace fl
