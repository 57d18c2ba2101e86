// `fedbits report STORE`: prints the answer and the tables of a report on a terminal.
#pragma once

#include <iosfwd>

#include "scenarios/analysis/study.hpp"
#include "scenarios/report/report.hpp"

namespace fl {

enum class Tables {
  one,  // the comparison of the first measure at equal uplink bits, and those that options ask for: a target, contrasts
  all,  // every measure at shares of the baseline's bits, at equal bits up and both ways, and the bits to a target
};

// Prints what was run, who is ahead at each level, and the tables.
void print_report(const Study& study, const ReportOptions& options, Tables tables, std::ostream& out);

}  // namespace fl
