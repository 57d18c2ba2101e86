// Prints contrasts of methods over the levels of heterogeneity on a terminal.
#pragma once

#include <iosfwd>

#include "scenarios/analysis/contrasts.hpp"

namespace fl {

// Prints the slopes of a family, and the tests of the margin at the strongest level if a margin fits the measure.
void print_contrasts(const Study& study, std::size_t measure, Against against, const Contrasts& contrasts, std::ostream& out);

}  // namespace fl
