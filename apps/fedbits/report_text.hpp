// `fedbits report STORE --text`: the report's tables for a terminal.
#pragma once

#include <iosfwd>

#include "scenarios/analysis/study.hpp"
#include "scenarios/report/report.hpp"

namespace fl {

// Per measure: every method against the baseline at equal bits, uplink first; then bits to the target.
void print_report(const Study& study, const ReportOptions& options, std::ostream& out);

}  // namespace fl
