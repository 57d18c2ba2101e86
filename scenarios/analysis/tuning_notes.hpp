// Notes for the reader of a study about its tuned values. Tuning records these constants with the runs (scenarios/sweep/tuning.cpp):
//   matched_bits_deviation, matched_bits_tolerance   for a method that must send as many bits as another, relative to these bits
//   tuned_at_edge:KEY                                the best value is the outermost of all tried values
#pragma once

#include <string>
#include <vector>

#include "scenarios/results/run_record.hpp"

namespace fl {

// Returns "bits +7.3%" for a run whose bits could not be matched, else "".
[[nodiscard]] FL_API std::string unmatched_text(const RunRecord& record);

// Returns one note for all combinations whose bits could not be matched, and one for all tuned values at an edge.
[[nodiscard]] FL_API std::vector<std::string> tuning_notes(const std::vector<RunRecord>& records);

}  // namespace fl
