// The answer of a study in a sentence per panel: who is ahead at equal bits, by how much, and how sure that is.
#pragma once

#include <string>
#include <vector>

#include "scenarios/analysis/study.hpp"

namespace fl {

// Returns a sentence for each panel of the study, from compare_at_equal_bits(): each pair of runs is judged at the largest number of bits
// that both reached. A method that sends less than the baseline can be ahead in it, which a comparison at the baseline's bits cannot show.
[[nodiscard]] FL_API std::vector<std::string> level_sentences(const Study& study, std::size_t measure, Against against);

}  // namespace fl
