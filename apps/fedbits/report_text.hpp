// `fedbits report STORE --text`: prints the report's tables on a terminal.
#pragma once

#include <iosfwd>

#include "scenarios/analysis/study.hpp"
#include "scenarios/report/report.hpp"

namespace fl {

// Prints for each measure a comparison of every method with the baseline at equal bits, uplink first, and then the bits to the target.
void print_report(const Study& study, const ReportOptions& options, std::ostream& out);

}  // namespace fl
