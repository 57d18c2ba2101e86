// Checksums of a stored run: XXH64 over its values as they are read back, so that whatever changes a number that a reader gets is found,
// wherever in the file it lies. What the store does not tell apart (the kinds of NaN, the sign of zero) has one checksum.
#pragma once

#include <cstdint>
#include <span>

#include "scenarios/results/run_record.hpp"

namespace fl {

// Of every column, axis, constant and plug-in of a run.
[[nodiscard]] FL_API std::uint64_t checksum_of(const RunRecord& record);
// Of every column of every round, and of their number.
[[nodiscard]] FL_API std::uint64_t checksum_of(std::span<const RoundRow> rows);

}  // namespace fl
