// The analysis plan of a study: a TOML file that `plan_file` in [sweep] names, written before the runs.
//
//   contrasts     = ["hard:top-1%"]              pairs of methods, A:B
//   between       = ["feedback.up=ef14:ef21"]    labels of an axis between which slopes are compared, KEY=A:B
//   classes       = ["absolute", "contraction"]  of the A and of the B
//   measures      = ["f_gap"]                    columns of rounds.csv
//   window        = 0.2                          fraction of the budget over which a value is a mean
//   heterogeneity = "optimum"                    axis of the slopes: optimum, start or order
//   levels        = ["100", "0"]                 from the least to the most heterogeneous
//   margins       = ["1.1x", "1pt"]
//   slope_test    = "t"                          or "sign-flip"
//   chance        = 0.1                          share that a diverged run counts as
//   method, level, baseline                      axes and label, as the options of `fedbits report`
//
// Only `contrasts` is required. Each run keeps the plan among its constants, as names with the value 1: "analysis_plan:SHA256:FILE" and
// "analysis_plan_text:TEXT". So the record's checksum covers the plan, and it moves with the run when stores are merged. The plan is no
// part of the run's hash, because it changes no result.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// A margin of non-inferiority: a ratio of gaps ("1.1x") or percentage points of a share ("1pt").
struct Margin {
  bool is_ratio = true;
  double value = 1.1;  // the ratio, or the difference of shares in [0, 1]
  std::string text{};  // as written
};
// Reads "1.1x" or "0.5pt". Returns nothing for other texts, ratios that are not above 1 and points that are not above 0 and below 100.
[[nodiscard]] FL_API std::optional<Margin> read_margin(const std::string& text);

struct AnalysisPlan {
  // The axes of method and level, and the label of the baseline.
  struct Axes {
    std::string method{}, level{}, baseline{};
  };
  std::string file{};    // name without folder
  std::string sha256{};  // of the file's bytes
  std::string text{};
  std::vector<std::string> contrasts{}, between{}, classes{}, measures{}, levels{}, margins{};
  std::string heterogeneity{}, slope_test{};  // "" = not in the plan
  Axes axes{};
  std::optional<double> window{}, chance{};
};

inline constexpr std::size_t kLongestPlan = 64 * 1024;  // bytes

// Reads a plan. Throws ConfigError with all problems and their places.
[[nodiscard]] FL_API AnalysisPlan parse_plan(const std::string& text, const std::string& file);
[[nodiscard]] FL_API AnalysisPlan read_plan(const std::filesystem::path& file);

// Returns the constants that a run keeps of its plan.
[[nodiscard]] FL_API std::vector<ResolvedConstant> plan_constants(const AnalysisPlan& plan);
// Returns true for a constant of plan_constants().
[[nodiscard]] FL_API bool is_plan_constant(const ResolvedConstant& constant);
// Returns the SHA-256 of a run's plan; "" for a run without one.
[[nodiscard]] FL_API std::string plan_hash(const RunRecord& record);
// Returns the plan of a run; nothing for a run without one. Throws ConfigError if the text does not have the SHA-256 beside it.
[[nodiscard]] FL_API std::optional<AnalysisPlan> plan_of(const RunRecord& record);

// Throws ConfigError if finished runs have another plan than `cells_plan` (a SHA-256, or "" without a plan). Runs without a plan are
// allowed: the plan was added later, and the report says so.
FL_API void refuse_changed_plan(const std::vector<RunRecord>& stored, const std::string& cells_plan);

}  // namespace fl
