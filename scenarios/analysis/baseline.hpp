// Which method the others are compared with.
//
// A method whose operator promises to lose nothing (kappa = 0 or delta = 1 in every run; without promises: the label "none") is a reference
// where at least two methods compress: its values stand beside theirs, and no claim is about it. At the bits of a compressed run it has
// often not finished its first round, so that to be better than it says nothing.
//
// The baseline is the method that was asked for; else, among the methods that are no reference and whose runs all ended well in every panel
// that they compete in, the first in the file's order that sends at most kFewBits times the fewest bits up per run. The dearer methods have
// then reached its bits. With fewer than two methods that compress it is the label "none", else the first method.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/options.hpp"
#include "scenarios/analysis/study.hpp"

namespace fl {

inline constexpr double kFewBits = 1.1;  // times the fewest bits; methods whose bits were matched differ by a few percent

// Sets Study::baseline and Study::is_reference and notes the choice; an unknown label is a problem. `records` are the study's runs.
void choose_baseline(Study& study, const std::vector<RunRecord>& records, const std::string& asked, Problems& problems);

}  // namespace fl
