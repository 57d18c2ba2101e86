// The number of what results mean. A run's hash covers its resolved scenario, and finished runs are not repeated; so the resolved scenario
// carries this number, and a corrected program repeats runs instead of showing numbers of the program before.
//
// Raise it with every correction after which a scenario gives other results: other bytes of a model, other counts of bits, another meaning
// of a column. Say in the list below what the number stands for. A change that moves no result leaves it alone. A correction that moves the
// results of some scenarios alone says which they are (results_version_for), and all other scenarios keep their number and their hash.
//
//   1  Every result before the number existed; resolved scenarios of that time do not have the key.
//   2  The corrections that CHANGELOG.md names for it, under "Results that moved" of version 0.1.0. Row r of the rounds speaks of one
//      model, x_r, in all its columns.
//   3  terngrad; three_pc with variant lag, or with clag and adacgd around the identity. All other scenarios keep 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/results/run_record.hpp"

namespace fl {

inline constexpr std::int64_t kResultsVersion = 3;       // of scenarios that the newest correction touches
inline constexpr std::int64_t kLeastResultsVersion = 2;  // of scenarios that no numbered correction touches

// The key's name in a resolved scenario.
inline constexpr const char* kResultsVersionKey = "results_version";

// Returns the number of this build for a resolved scenario, whatever number its text carries.
[[nodiscard]] FL_API std::int64_t results_version_for(const std::string& resolved_toml);
// Returns a resolved scenario with this number.
[[nodiscard]] std::string with_results_version(std::string resolved_toml);

// Returns the number that a stored scenario carries. A text without the key has number 1. A record without any text, which fedbits does not
// write, says nothing and counts as of this build.
[[nodiscard]] FL_API std::int64_t results_version_of(const std::string& resolved_toml);

// The number of runs by their results_version.
using ResultsVersions = std::map<std::int64_t, std::size_t>;

// Removes the runs whose number is not the one that this build gives their scenario, which must not be averaged with or compared to runs of
// this build. Returns how many were removed of each number.
FL_API ResultsVersions remove_other_results(std::vector<RunRecord>& records);

// "3 runs with results_version 1": a list for messages.
[[nodiscard]] FL_API std::string to_string(const ResultsVersions& versions);

// Says in a sentence why runs of other numbers were left out, and what to do. Returns "" when there are none.
[[nodiscard]] FL_API std::string note_of_other_results(const ResultsVersions& versions);

}  // namespace fl
