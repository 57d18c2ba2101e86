// `fedbits export STORE --contrast A:B --differences differences.csv --slopes slopes.csv`: the paired differences of contrasts and their
// tests with all digits, so that other programs can repeat the analysis. docs/results.md describes every column.
#pragma once

#include <array>
#include <filesystem>
#include <iosfwd>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/contrasts.hpp"
#include "scenarios/results/run_store.hpp"
#include "study/output/table_writer.hpp"

namespace fl {

// The columns of differences.csv before those of the axes, and the columns of slopes.csv.
inline constexpr auto kDifferenceColumns = std::to_array<const char*>(
    {"name",        "group",       "measure",         "bits",  "a",       "b",       "class_a",    "class_b",  "level",
     "seed",        "zeta_sq",     "zeta_sq_optimum", "x",     "value_a", "value_b", "difference", "capped_a", "capped_b",
     "budget_bits", "evaluations", "run_a",           "run_b", "why"});
inline constexpr auto kSlopeColumns = std::to_array<const char*>({"group",
                                                                  "measure",
                                                                  "bits",
                                                                  "a",
                                                                  "b",
                                                                  "class_a",
                                                                  "class_b",
                                                                  "heterogeneity",
                                                                  "seeds",
                                                                  "left_out",
                                                                  "capped",
                                                                  "slope",
                                                                  "slope_low",
                                                                  "slope_high",
                                                                  "p",
                                                                  "p_holm",
                                                                  "p_flip",
                                                                  "p_flip_holm",
                                                                  "verdict",
                                                                  "why",
                                                                  "margin",
                                                                  "level",
                                                                  "difference",
                                                                  "difference_low",
                                                                  "difference_high",
                                                                  "p_non_inferior",
                                                                  "p_superior",
                                                                  "p_non_inferior_adjusted",
                                                                  "p_superior_adjusted",
                                                                  "result",
                                                                  "result_why",
                                                                  "between",
                                                                  "other_group"});

struct ContrastExport {
  std::filesystem::path differences{}, slopes{};  // output paths; an empty path omits the table
  StudyOptions study{};
  ContrastOptions contrasts{};
};

// Writes the tables, first under temporary names. Returns the damaged runs that were left out.
FL_API std::vector<DamagedRun> export_contrasts(const RunStore& store, const ContrastExport& options);

}  // namespace fl
