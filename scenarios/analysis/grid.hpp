// Groups runs by their place in a sweep: one cell per combination of axis labels, with all seeds of the combination.
//
// Seeds are paired: along every axis the same seeds give the same split, initial model and sampling. The seed itself is not an axis.
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
  std::vector<std::string> keys;  // axes without the seed's; preceded by the scenario's name if there are several names
  std::vector<GridCell> cells;    // in the order of their first runs
};

inline constexpr const char* kNoLabel = "-";  // label of a run on an axis that does not apply to it

// Groups runs by axis labels. The records must outlive the grid.
[[nodiscard]] FL_API Grid group_by_axes(const std::vector<RunRecord>& records);

// Returns the axis that has `label` among its labels.
[[nodiscard]] FL_API std::optional<std::size_t> axis_with_label(const Grid& grid, const std::string& label);

// Returns "5", "5, 1 distinct" (replicates.hpp), or "2/5 diverged, 1/5 interrupted".
[[nodiscard]] FL_API std::string runs_text(const GridCell& cell);

}  // namespace fl
