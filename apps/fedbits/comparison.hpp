// The table that compares the cells of a sweep: one row per combination of axis labels, means over seeds with 95% intervals.
//
// Seeds are paired: along every axis the same seeds give the same split, initial model and sampling, so a ratio of bits is taken seed by
// seed against the row that differs in one label only, the baseline's. A cell in which any run diverged or did not end has no mean; it
// says so instead.
#pragma once

#include <string>
#include <vector>

#include "apps/fedbits/terminal.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

struct ComparisonOptions {
  std::vector<std::string> measures = {"train_loss", "f_gap", "test_accuracy"};  // columns of runs.csv; those that no run has are left out
  std::string baseline = "none";  // label of the row that others are compared with; without such a label there is no ratio
};

// Returns what is printed below the table: what its numbers are, what they are not, and where the results lie. `folder` holds the store.
[[nodiscard]] std::string comparison_note(const std::string& folder);
// Returns a line per row of the table whose runs broke the contract of their operator; "" without such rows.
[[nodiscard]] std::string contracts_note(const std::vector<RunRecord>& records);

[[nodiscard]] Table comparison_table(const std::vector<RunRecord>& records, const ComparisonOptions& options = {});

}  // namespace fl
