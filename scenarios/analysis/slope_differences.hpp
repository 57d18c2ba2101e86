// Differences of slopes between two labels of an axis: does the effect of heterogeneity on a contrast depend on, say, the feedback?
//
//   c_s = b_s(group with the first label) - b_s(group with the second label)      b_s the slope of seed s (contrasts.hpp)
//
// The two groups agree in the labels of all other axes, except axes that are zipped with this one under the same labels. Seeds are paired,
// because both groups share split, initial model and sampling; so the c_s are independent observations, and are tested as slopes are. A
// seed without a slope in one of the groups has no c_s.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/options.hpp"
#include "scenarios/analysis/contrasts.hpp"

namespace fl {

// Splits "KEY=A:B" at each place that is possible. Empty for a text that has no such place.
[[nodiscard]] FL_API std::vector<LabelPair> label_pairs(const std::string& text);

// Reads the comparisons of the options. Unknown axes and labels are problems, and so are the axes of the method and the level.
[[nodiscard]] std::vector<LabelPair> compared_labels(const Study& study, const ContrastOptions& options, Problems& problems);

// Adds the differences of slopes of all pairs, comparisons and groups, which are a family of their own. Reads pairs, between, groups,
// levels, differences and test.
void add_slope_differences(Contrasts& contrasts, const Study& study, Direction direction);

}  // namespace fl
