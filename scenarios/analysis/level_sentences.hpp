// The answer of a study in a sentence per panel: who is ahead at equal bits, by how much, and how sure that is.
#pragma once

#include <string>
#include <vector>

#include "scenarios/analysis/study.hpp"

namespace fl {

// Returns a sentence for each panel of the study, from compare_at_equal_bits(): each pair of runs is judged at the largest number of bits
// that both reached. A method that sends less than the baseline can be ahead in it, which a comparison at the baseline's bits cannot show.
[[nodiscard]] FL_API std::vector<std::string> level_sentences(const Study& study, std::size_t measure, Against against);

// Returns a sentence on what changes in these answers for the uplink if the bits down count as well, or that nothing does. "" if the study
// does not know the bits down.
[[nodiscard]] FL_API std::string both_ways_sentence(const Study& study, std::size_t measure);

}  // namespace fl
