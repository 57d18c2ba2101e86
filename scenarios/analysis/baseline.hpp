// Chooses the method with which the others are compared.
//
// A method whose operator promises to lose nothing is a reference if at least two methods compress. The promise is kappa = 0 or delta = 1
// in every run; without promises the method labelled "none" qualifies. The values of a reference are shown beside the others, and no claim
// is made about it. At the bits of a compressed run it has often not finished its first round, so a comparison would say nothing.
//
// The baseline is the method that the user asked for. By default it is the first method in the file's order that is not a reference, whose
// runs all ended well in every panel that it competes in, and that sends at most kFewBits times the smallest number of uplink bits per run.
// The more expensive methods have then reached its bits. With fewer than two methods that compress, the baseline is the label "none" or,
// without that label, the first method.
// then reached its bits. With fewer than two methods that compress it is the label "none", else the first method.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/options.hpp"
#include "scenarios/analysis/study.hpp"

namespace fl {

inline constexpr double kFewBits = 1.1;  // times the smallest number of bits; methods with matched bits differ by a few percent

// Sets Study::baseline and Study::is_reference and notes the choice. An unknown label is a problem. `records` are the study's runs.
void choose_baseline(Study& study, const std::vector<RunRecord>& records, const std::string& asked, Problems& problems);

}  // namespace fl
