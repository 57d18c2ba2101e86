// Checksums of a stored run: XXH64 over its values as they are read back. Any damage in the file that changes a number that is read changes
// the checksum. Values that the store does not distinguish (the kinds of NaN, the sign of zero) have the same checksum.
#pragma once

#include <cstdint>
#include <span>

#include "scenarios/results/run_record.hpp"

namespace fl {

// Returns the checksum of every column, axis, constant and plug-in of a run.
[[nodiscard]] FL_API std::uint64_t checksum_of(const RunRecord& record);
// Returns the checksum of every column of every round, and of the number of rounds.
[[nodiscard]] FL_API std::uint64_t checksum_of(std::span<const RoundRow> rows);

}  // namespace fl
