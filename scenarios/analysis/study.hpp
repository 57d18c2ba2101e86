// A study: the runs of a store, grouped by method and by level of heterogeneity for comparison.
//
// One axis of the sweep is the method (the compressor), and one is the level (the degree of heterogeneity). A panel holds the runs that
// differ only in method and seed: one level, and one combination of the labels of all other axes. Within a panel runs of equal seed are
// paired.
//
// A run that diverged, failed or was interrupted is counted in its cell, and the cell has no mean: an average over the successful runs
// would favour a method that loses some.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/statistics.hpp"
#include "scenarios/results/end_point.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/results/trace.hpp"

namespace fl {

struct StudyOptions {
  std::vector<std::string> measures{};  // columns of rounds.csv; empty: the losses, accuracies and measures that any run has
  std::string study{};                  // name of one of the store's studies (comparable.hpp); empty: the one with the most runs
  std::string baseline{};               // label of the method the others are compared with; empty: chosen by the rule of baseline.hpp
  // One key, or several separated by commas, whose labels are joined by " + ". Empty: the first axis that begins with "compressor", else
  // with "feedback", else the last axis.
  std::string method_axis{};
  std::string level_axis{};             // key; empty: the first that begins with "partition", else with "data"; may be missing
  double window = kWindow;              // fraction of a budget over which a run's end point is a mean
  bool claims_despite_refused = false;  // allows claims about cells in which updates were refused because they were not finite
};

// Columns of the chart of the model's accuracy over clients: the two edges of a band, the line in it, and the worst client.
inline constexpr std::array kClientBand = {"client_accuracy_p10", "client_accuracy_p50", "client_accuracy_p90", "client_accuracy_worst"};

// Quantities that theorems bound: the mean of |grad f|^2 over the rounds so far, f - f* at the weighted average of the models, and f - f*
// under a tight step, whose rate is predicted.
enum Theories : std::size_t { kMeanGradient, kAverageModel, kTightRate, kNumTheories };
inline constexpr int kTightStep = 9;  // its number beside those of theorems

struct StudyRun {
  RunRecord record{};
  std::vector<RunTrace> traces{};      // one per measure of the study
  RunTrace density{};                  // elements sent / (clients * P)
  double mean_density = kNotMeasured;  // mean over rounds
  // Means over rounds of the columns of the measure `round_times`.
  double message_s = kNotMeasured, message_bits = kNotMeasured;
  std::vector<RunTrace> clients{};  // one per column of kClientBand
  // Quantities that theorems bound, with their bounds, in the order of Theories. Empty if no theorem applies to this run
  // (scenarios/experiment/theory.hpp).
  struct Theory {
    int theorem = 0;
    bool in_expectation = false;
    RunTrace measured{}, bound{};
  };
  std::array<Theory, kNumTheories> theory{};
  // The worst over all rounds and clients, in the unit of the compressor's input.
  double kappa = kNotMeasured, delta = kNotMeasured, omega = kNotMeasured;
  std::uint64_t refused = 0;  // client updates that were not finite
  [[nodiscard]] bool is_done() const { return record.status == RunStatus::done; }
};

struct StudyCell {
  std::size_t method = 0, panel = 0;  // indices into Study::methods and Study::panels
  std::vector<std::size_t> runs{};    // indices into Study::runs; one per seed, seeds ascending
  std::vector<std::size_t> first{};   // [runs] the first run of the cell that is identical (replicates.hpp)
  std::size_t num_repeated = 0;       // runs left out because a later one has the same place and seed

  // Returns one run of each set of identical ones. Means and intervals are computed over these runs.
  [[nodiscard]] FL_API std::vector<std::size_t> distinct() const;
};

struct Panel {
  std::string level{};               // label on the level axis; "" without a level axis
  std::string rest{};                // the other axes, "key=label, ...", axes with the same labels once; "" without other axes
  std::vector<std::size_t> cells{};  // indices into Study::cells, in the order of the methods
  [[nodiscard]] FL_API std::string title(const std::string& level_key) const;
};

// A study of a store.
struct StoredStudy {
  std::string name{};
  std::size_t num_runs = 0;
};

// The store from which the study was read.
struct StudySource {
  std::string file{};
  std::vector<StoredStudy> studies{};  // includes this study; the first is the default
};

// The keys of the scenario that tell methods and levels apart.
struct StudyAxes {
  std::string method{}, level{};  // level is empty without a level axis
};

// The methods with which others are compared.
struct StudyReferences {
  std::size_t baseline = 0;          // index into methods
  std::vector<bool> is_reference{};  // [methods] loses nothing: is shown beside the alternatives (baseline.hpp)
};

// The options of StudyOptions that affect end points and claims.
struct StudyRules {
  double window = kWindow;
  bool claims_despite_refused = false;
};

struct Study {
  StudySource store{};
  std::string name{};                // name among the studies of the store (comparable.hpp)
  std::vector<std::string> names{};  // names of the scenarios
  std::vector<std::string> measures{};
  std::vector<MeasureColumn> columns{};  // [measures] their descriptions
  StudyAxes axes{};
  std::vector<std::string> methods{};  // labels, in the order of their first runs
  StudyReferences references{};
  StudyRules rules{};
  std::vector<Panel> panels{};
  std::vector<StudyCell> cells{};
  std::vector<StudyRun> runs{};       // in the order of the store
  std::vector<DamagedRun> damaged{};  // runs left out because their bytes do not match their checksums
  std::vector<std::string> notes{};   // for the reader: repeated runs, default choices

  // Returns true for a method that is compared with the baseline.
  [[nodiscard]] bool is_alternative(std::size_t method) const { return method != references.baseline && !references.is_reference[method]; }
  // Returns true if all runs know this kind of bits.
  [[nodiscard]] FL_API bool knows(Against against) const;
  [[nodiscard]] FL_API bool all_done(const StudyCell& cell) const;
  // Returns "5", "5, 1 distinct", "5, 12 updates refused", or "2/5 diverged".
  [[nodiscard]] FL_API std::string runs_text(const StudyCell& cell) const;
  // Returns the broken_text of the cell's runs (broken_contracts.hpp); "" if no contract was broken.
  [[nodiscard]] FL_API std::string broken(const StudyCell& cell) const;
  // Returns the number of updates that were refused in the cell's runs.
  [[nodiscard]] FL_API std::uint64_t refused(const StudyCell& cell) const;
  // Returns the panel's cell of a method, or null.
  [[nodiscard]] FL_API const StudyCell* find(const Panel& panel, std::size_t method) const;
  // Returns the traces of a measure, one per distinct run; empty for a cell with unfinished runs or with a run that was never measured.
  [[nodiscard]] FL_API std::vector<const RunTrace*> traces(const StudyCell& cell, std::size_t measure) const;
  [[nodiscard]] FL_API std::vector<const RunTrace*> density_traces(const StudyCell& cell) const;
  [[nodiscard]] FL_API std::vector<const RunTrace*> client_traces(const StudyCell& cell, std::size_t column) const;
  // Returns the bounded quantity or its bound for a cell whose runs all have the same theorem; empty for other cells.
  [[nodiscard]] FL_API std::vector<const RunTrace*> theory_traces(const StudyCell& cell, Theories theory, bool bound) const;
  // Estimates the mean of one number per run over the distinct runs of a cell; NaN if a run is not done or was not measured.
  [[nodiscard]] FL_API Estimate estimate(const StudyCell& cell, double (*number)(const StudyRun&)) const;
};

// Reads the study that the options name. Throws ConfigError with all problems at once: an unknown study, measure, axis or baseline, or a
// store without runs.
[[nodiscard]] FL_API Study read_study(const RunStore& store, const StudyOptions& options = {});

// Reads that study first. If the options name no study, the other studies of the store follow, at most kMostStudies in total. A note of the
// first study names those that are left out, or that the options do not fit.
inline constexpr std::size_t kMostStudies = 12;
[[nodiscard]] FL_API std::vector<Study> read_studies(const RunStore& store, const StudyOptions& options = {});

// A mean over the seeds of a cell, with Student's 95% interval.
struct CurvePoint {
  double x = 0;
  MeanAndHalfWidth y;
};

// Returns the mean of step functions on a common grid, one trace per distinct run. The curve ends where the first of the runs ends, so that
// every mean is over all runs, and starts when all runs have a measurement.
[[nodiscard]] FL_API std::vector<CurvePoint> mean_curve(std::span<const RunTrace* const> traces, Against against,
                                                        const std::vector<double>& grid);

// Returns the grid of a panel: evenly spaced rounds, or bits in equal ratios from the smallest first message to the largest total.
[[nodiscard]] FL_API std::vector<double> curve_grid(const Study& study, const Panel& panel, Against against, std::size_t points);

}  // namespace fl
