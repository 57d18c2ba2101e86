// `fedbits report --latex FILE`: the tables of a study for a paper.
#pragma once

#include <iosfwd>

#include "scenarios/analysis/study.hpp"
#include "scenarios/report/report.hpp"

namespace fl {

// Writes three or four tables for LaTeX with the package booktabs: the setup, values that tuning found, the comparison of the first measure
// at equal uplink bits, and the bits to a target; and a comment with the sentence to cite. The file is for \input{} in a document.
void write_latex_tables(const Study& study, const ReportOptions& options, std::ostream& out);

}  // namespace fl
