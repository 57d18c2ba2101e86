// The table that compares the cells of a sweep: one row per combination of axis labels, with means over seeds and 95% intervals.
//
// Seeds are paired: along every axis the same seeds give the same split, initial model and sampling. A ratio of bits is therefore taken
// seed by seed against the baseline's row, the row that differs in one label only. A cell in which any run diverged or did not end shows
// this state instead of a mean.
#pragma once

#include <string>
#include <vector>

#include "apps/fedbits/terminal.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

struct ComparisonOptions {
  std::vector<std::string> measures = {"train_loss", "f_gap", "test_accuracy"};  // columns of runs.csv; columns without values are left out
  std::string baseline = "none";  // label of the row that others are compared with; without such a label the table has no ratio
};

// Returns the note below the table: what its numbers mean, what they do not mean, and where the results are. `folder` holds the store.
[[nodiscard]] std::string comparison_note(const std::string& folder);
// Returns a line per row of the table whose runs broke the contract of their operator; "" without such rows.
[[nodiscard]] std::string contracts_note(const std::vector<RunRecord>& records);
// Returns a line per set of labels of an axis that change nothing (idle_axes.hpp); "" without such labels.
[[nodiscard]] std::string idle_axes_note(const std::vector<RunRecord>& records);
// Returns a line about runs without a known minimum of f (missing_minima.hpp); "" without such runs.
[[nodiscard]] std::string missing_minima_note(const std::vector<RunRecord>& records);

[[nodiscard]] Table comparison_table(const std::vector<RunRecord>& records, const ComparisonOptions& options = {});

}  // namespace fl
