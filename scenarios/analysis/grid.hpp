// Runs grouped by their place in a sweep: one cell per combination of axis labels, the seeds of a cell together.
//
// Seeds are paired: along every axis the same seeds give the same split, initial model and sampling. The seed itself is no axis.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// The runs of one combination of labels.
struct GridCell {
  std::vector<std::string> labels;  // one per key
  std::vector<const RunRecord*> runs;
  [[nodiscard]] FL_API std::size_t count(RunStatus status) const;
  [[nodiscard]] bool all_done() const { return count(RunStatus::done) == runs.size(); }
};

struct Grid {
  std::vector<std::string> keys;  // of the axes but the seed's; the scenario's name before them where there are several
  std::vector<GridCell> cells;    // in the order of their first runs
};

inline constexpr const char* kNoLabel = "-";  // of a run that an axis does not reach

// The records must outlive the grid.
[[nodiscard]] FL_API Grid group_by_axes(const std::vector<RunRecord>& records);

// The axis that has `label` among its labels.
[[nodiscard]] FL_API std::optional<std::size_t> axis_with_label(const Grid& grid, const std::string& label);

// "5", "5, 1 distinct" (replicates.hpp), or "2/5 diverged, 1/5 interrupted".
[[nodiscard]] FL_API std::string runs_text(const GridCell& cell);

}  // namespace fl
