// A study: the runs of a store, by method and by level of heterogeneity, ready to be compared.
//
// One axis of the sweep is the method (which compressor), one the level (how heterogeneous). A panel holds the runs that differ in method
// and seed only: one level, and one combination of the labels of all other axes. Within a panel runs of equal seed are paired.
//
// A run that diverged, failed or was interrupted is counted where it lies, and its cell has no mean: an average over the runs that went
// well would flatter the method that loses some.
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
  std::vector<std::string> measures{};  // columns of rounds.csv; empty: those that any run has of losses, accuracies and measures
  std::string study{};                  // name of one of the store's studies (comparable.hpp); empty: the one with the most runs
  std::string baseline{};               // label of the method the others are compared with; empty: chosen by the rule of baseline.hpp
  // Key, or several with commas: their labels joined by " + ". Empty: the first that begins with "compressor", else with "feedback", else
  // the last axis.
  std::string method_axis{};
  std::string level_axis{};             // key; empty: the first that begins with "partition", else with "data"; may be missing
  double window = kWindow;              // share of a budget over which a run's end point is a mean
  bool claims_despite_refused = false;  // about cells in which updates were refused because they were not finite
};

// Columns of the picture of how the model serves its clients: a band, the line in it, and the one who is served worst.
inline constexpr std::array kClientBand = {"client_accuracy_p10", "client_accuracy_p50", "client_accuracy_p90", "client_accuracy_worst"};

// What theorems bound: the mean of |grad f|^2 over the rounds so far, and f - f* at the weighted average of the models.
enum Theories : std::size_t { kMeanGradient, kAverageModel };

struct StudyRun {
  RunRecord record{};
  std::vector<RunTrace> traces{};      // one per measure of the study
  RunTrace density{};                  // elements sent / (clients * P)
  double mean_density = kNotMeasured;  // over rounds
  std::vector<RunTrace> clients{};     // of kClientBand
  // What theorems bound and their bounds, of kTheories; empty without a theorem that speaks of this run (scenarios/experiment/theory.hpp).
  struct Theory {
    int theorem = 0;
    bool in_expectation = false;
    RunTrace measured{}, bound{};
  };
  std::array<Theory, 2> theory{};
  // The worst of all rounds and clients, in the unit of the compressor's input.
  double kappa = kNotMeasured, delta = kNotMeasured, omega = kNotMeasured;
  std::uint64_t refused = 0;  // updates of clients that were not finite
  [[nodiscard]] bool is_done() const { return record.status == RunStatus::done; }
};

struct StudyCell {
  std::size_t method = 0, panel = 0;  // into Study::methods and Study::panels
  std::vector<std::size_t> runs{};    // into Study::runs; one per seed, seeds ascending
  std::vector<std::size_t> first{};   // [runs] the first of them that is the same run (replicates.hpp)
  std::size_t num_repeated = 0;       // runs left out since a later one has the same place and seed

  // One run of each set of identical ones: what means and intervals are over.
  [[nodiscard]] FL_API std::vector<std::size_t> distinct() const;
};

struct Panel {
  std::string level{};               // label on the level axis; "" without one
  std::string rest{};                // the other axes, "key=label, ...", those with the same labels once; "" when there are none
  std::vector<std::size_t> cells{};  // into Study::cells, in the order of the methods
  [[nodiscard]] FL_API std::string title(const std::string& level_key) const;
};

struct Study {
  struct Entry {
    std::string name{};
    std::size_t num_runs = 0;
  };
  // The store that the study was read from.
  struct Source {
    std::string file{};
    std::vector<Entry> studies{};  // this one among them; the one that is shown unless asked first
  };
  struct Axes {
    std::string method{}, level{};  // level is empty without a level axis
  };
  // What methods are compared with.
  struct References {
    std::size_t baseline = 0;          // into methods
    std::vector<bool> is_reference{};  // [methods] loses nothing, so that it is a line to compare with and no alternative (baseline.hpp)
  };
  // What StudyOptions say of end points and claims.
  struct Rules {
    double window = kWindow;
    bool claims_despite_refused = false;
  };
  Source store{};
  std::string name{};                // among the studies of the store (comparable.hpp)
  std::vector<std::string> names{};  // of the scenarios
  std::vector<std::string> measures{};
  std::vector<MeasureColumn> columns{};  // [measures] what each of them is
  Axes axes{};
  std::vector<std::string> methods{};  // labels, in the order of their first runs
  References references{};
  Rules rules{};
  std::vector<Panel> panels{};
  std::vector<StudyCell> cells{};
  std::vector<StudyRun> runs{};       // in the order of the store
  std::vector<DamagedRun> damaged{};  // runs left out since their bytes do not match their checksums
  std::vector<std::string> notes{};   // what a reader has to know: repeated runs, choices made for him

  // Returns true for a method that is compared with the baseline.
  [[nodiscard]] bool is_alternative(std::size_t method) const { return method != references.baseline && !references.is_reference[method]; }
  // Returns true if all runs know this kind of bits.
  [[nodiscard]] FL_API bool knows(Against against) const;
  [[nodiscard]] FL_API bool all_done(const StudyCell& cell) const;
  // "5", "5, 1 distinct", "5, 12 updates refused", or "2/5 diverged".
  [[nodiscard]] FL_API std::string runs_text(const StudyCell& cell) const;
  // What broken_text says of the cell's runs (broken_contracts.hpp); "" where no contract was broken.
  [[nodiscard]] FL_API std::string broken(const StudyCell& cell) const;
  // Updates that were refused in the cell's runs.
  [[nodiscard]] FL_API std::uint64_t refused(const StudyCell& cell) const;
  // The panel's cell of a method, or null.
  [[nodiscard]] FL_API const StudyCell* find(const Panel& panel, std::size_t method) const;
  // The traces of a measure, one per distinct run; none for a cell that is not all done or where a run was never measured.
  [[nodiscard]] FL_API std::vector<const RunTrace*> traces(const StudyCell& cell, std::size_t measure) const;
  [[nodiscard]] FL_API std::vector<const RunTrace*> density_traces(const StudyCell& cell) const;
  [[nodiscard]] FL_API std::vector<const RunTrace*> client_traces(const StudyCell& cell, std::size_t column) const;
  // What is bounded or its bounds, of a cell whose runs all have the same theorem; none for others.
  [[nodiscard]] FL_API std::vector<const RunTrace*> theory_traces(const StudyCell& cell, Theories theory, bool bound) const;
  // Of one number per run, over the distinct runs of a cell; NaN where a run is not done or was not measured.
  [[nodiscard]] FL_API Estimate estimate(const StudyCell& cell, double (*number)(const StudyRun&)) const;
};

// Reads the study that the options name. ConfigError with all problems at once: an unknown study, measure, axis or baseline, a store
// without runs.
[[nodiscard]] FL_API Study read_study(const RunStore& store, const StudyOptions& options = {});

// Reads that study first and, where the options name none, the others of the store after it, at most kMostStudies in all. A note of the
// first one names those that are not here, or that the options do not fit.
inline constexpr std::size_t kMostStudies = 12;
[[nodiscard]] FL_API std::vector<Study> read_studies(const RunStore& store, const StudyOptions& options = {});

// A mean over the seeds of a cell, with Student's 95% interval.
struct CurvePoint {
  double x = 0;
  MeanAndHalfWidth y;
};

// The mean of step functions on a common grid, one trace per distinct run. It ends where the first of the runs ends, so that every mean is
// over all of them, and has no points before all of them were measured.
[[nodiscard]] FL_API std::vector<CurvePoint> mean_curve(std::span<const RunTrace* const> traces, Against against,
                                                        const std::vector<double>& grid);

// The grid of a panel: evenly spaced rounds, or bits in equal ratios from the smallest first message to the largest total.
[[nodiscard]] FL_API std::vector<double> curve_grid(const Study& study, const Panel& panel, Against against, std::size_t points);

}  // namespace fl
