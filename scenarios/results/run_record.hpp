// The stored results of a run: one summary (RunRecord) and one row per round (RoundRow).
//
// Row 0 is the start. Row r describes the model x_r, the model after round r, by its losses, f_gap, accuracies, the true gradient
// |grad f(x_r)|^2 and heterogeneity. It describes the messages of round r by means over the cohort in the unit of the compressor's input:
// error = |e_{r-1}|^2 (before the round), compensated = |p|^2, compression error = |C(p) - p|^2, grad = |input without memory|^2. Elements
// and bits are totals over that round's clients.
//
// A double that was not measured is NaN here, NULL in the store and an empty cell in a table.
// The column lists below name the columns that every run has; the store's schema and the exports follow them, in this order. A run's record
// describes the columns of measures that its scenario asks for (evaluate.measures), and RoundRow::more holds their values.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fl_core/config/measure_column.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// Results of one round over all its clients.
struct RoundRow {
  std::uint64_t round = 0;
  std::uint64_t clients = 0;                // cohort size
  std::uint64_t elements_up = 0;            // values sent
  double bits_up_published = kNotMeasured;  // counted as in the method's paper
  double bits_up_entropy = kNotMeasured;    // lower bound for an ideal code
  std::uint64_t bits_up = 0;                // exact length of the encodings, headers included
  std::uint64_t bits_down = 0;              // exact length, headers and catch-up of absent clients included
  double train_loss = kNotMeasured;         // f(x_r), regulariser included
  double f_gap = kNotMeasured;              // f(x_r) - f*
  double grad_norm_sq = kNotMeasured;
  double error_norm_sq = kNotMeasured;
  double compensated_norm_sq = kNotMeasured;
  double compression_error_sq = kNotMeasured;
  double test_accuracy = kNotMeasured;  // in [0, 1]
  double test_loss = kNotMeasured;
  double simulated_s = kNotMeasured;          // since the start; not measured without a clock
  double global_grad_norm_sq = kNotMeasured;  // |grad f(x_r)|^2
  double density = kNotMeasured;              // elements sent / (clients * P)
  double virtual_drift = kNotMeasured;        // distance of the virtual iterate from x, |mean e|
  double measured_kappa = kNotMeasured;       // largest |C(p) - p| of the cohort
  double measured_delta = kNotMeasured;       // smallest 1 - |C(p) - p|^2 / |p|^2 of the cohort
  double measured_omega = kNotMeasured;       // largest |C(p) - p|^2 / |p|^2 of the cohort
  double zeta_sq = kNotMeasured;              // weighted mean over all clients of |grad f_i(x_r) - grad f(x_r)|^2
  double residual_age = kNotMeasured;         // rounds since a client's last acknowledged message, mean over the cohort's clients with one
  std::uint64_t refused = 0;                  // clients whose vectors were not finite and that sent nothing
  double perplexity = kNotMeasured;           // exp(test_loss), for text
  double hit_rate_10 = kNotMeasured;          // fraction of test rows whose item is among the first 10 of 100
  double ndcg_10 = kNotMeasured;              // normalised discounted cumulative gain over the first 10
  // Accuracy of x_r on each client's own rows. Statistics over the clients: mean, 10th, 50th and 90th percentile, minimum, standard
  // deviation.
  double client_accuracy_mean = kNotMeasured;
  double client_accuracy_p10 = kNotMeasured;
  double client_accuracy_p50 = kNotMeasured;
  double client_accuracy_p90 = kNotMeasured;
  double client_accuracy_worst = kNotMeasured;
  double client_accuracy_deviation = kNotMeasured;
  double update_dissimilarity = kNotMeasured;    // mean |d_i|^2 / |mean d_i|^2 of the cohort's updates before compression
  double client_drift = kNotMeasured;            // mean |y_i - mean y|^2 of the cohort's models after its local steps
  double gradient_dissimilarity = kNotMeasured;  // B^2: weighted mean over all clients of |grad f_i(x_r)|^2 / |grad f(x_r)|^2
  double average_f_gap = kNotMeasured;           // f - f* at the weighted average of x_0 .. x_{r-1}
  std::vector<double> more{};                    // one value per column of RunRecord::columns, in the same order
};

enum class RunStatus { done, diverged, interrupted, failed };

[[nodiscard]] constexpr const char* to_string(RunStatus status) {
  switch (status) {
    case RunStatus::done: return "done";
    case RunStatus::diverged: return "diverged";
    case RunStatus::interrupted: return "interrupted";
    case RunStatus::failed: return "failed";
  }
  return "failed";
}

// Returns true for a run that would end the same way if it were repeated. Such runs are shown and not repeated; the others are run again.
[[nodiscard]] constexpr bool is_finished(RunStatus status) { return status == RunStatus::done || status == RunStatus::diverged; }

// One value of a sweep axis: the key of the axis and the label of the value, as in {"compressor.up", "top-1%"}.
struct AxisLabel {
  std::string key{}, label{};
  bool operator==(const AxisLabel&) const = default;
};

// A number that the scenario sets by a rule, with its resolved value: L, mu, gamma, ...
struct ResolvedConstant {
  std::string name{};
  double value = kNotMeasured;
};

// A plug-in that a run used: the file's name without its folder, and the SHA-256 of its bytes.
struct PluginUse {
  std::string name{}, sha256{};
  bool operator==(const PluginUse&) const = default;
};

// Summary of one run.
struct RunRecord {
  std::string run{};   // hash of the resolved scenario
  std::string name{};  // name of the scenario
  std::uint64_t seed = 0;
  RunStatus status = RunStatus::failed;
  std::uint64_t rounds = 0;                                                              // completed rounds
  std::uint64_t bits_up = 0, bits_down = 0;                                              // totals over all rounds and clients
  double train_loss = kNotMeasured, f_gap = kNotMeasured, test_accuracy = kNotMeasured;  // at the end
  double total_error = kNotMeasured;                                                     // sum over rounds of error_norm_sq
  double zeta_sq = kNotMeasured;                                                         // at the initial model
  std::string checksum{};                                                                // checksum of the final model, hex
  double seconds = kNotMeasured;                                                         // wall-clock time, never part of a byte comparison

  std::string split_hash{};  // hash of the partition (the assignment of rows to clients)
  std::string scenario{};    // the resolved scenario with every key, as a scenario file
  std::string version{};     // version of fedbits
  std::string cpu{}, instruction_set{}, compiler{};
  std::string device{};  // "cpu", or the name of the GPU; GPUs sum in another order
  std::uint64_t threads = 0;
  std::string message{};          // reason of a failure
  std::uint64_t parameters = 0;   // P; 0 = unknown
  double f_star = kNotMeasured;   // optimal value that f_gap refers to
  std::vector<AxisLabel> axes{};  // in the order of the scenario file
  std::vector<ResolvedConstant> constants{};
  std::vector<PluginUse> plugins{};      // plug-ins that define parts of the scenario; empty for most runs
  std::vector<MeasureColumn> columns{};  // columns of the measures that the scenario asks for; empty for most runs
};

struct RoundColumn {
  std::string_view name;
  std::variant<std::uint64_t RoundRow::*, double RoundRow::*> member;
};

// Every column of rounds.csv after `run`. New columns are appended at the end.
inline constexpr auto kRoundColumns = std::to_array<RoundColumn>({
    {"round", &RoundRow::round},
    {"clients", &RoundRow::clients},
    {"elements_up", &RoundRow::elements_up},
    {"bits_up_published", &RoundRow::bits_up_published},
    {"bits_up_entropy", &RoundRow::bits_up_entropy},
    {"bits_up", &RoundRow::bits_up},
    {"bits_down", &RoundRow::bits_down},
    {"train_loss", &RoundRow::train_loss},
    {"f_gap", &RoundRow::f_gap},
    {"grad_norm_sq", &RoundRow::grad_norm_sq},
    {"error_norm_sq", &RoundRow::error_norm_sq},
    {"compensated_norm_sq", &RoundRow::compensated_norm_sq},
    {"compression_error_sq", &RoundRow::compression_error_sq},
    {"test_accuracy", &RoundRow::test_accuracy},
    {"test_loss", &RoundRow::test_loss},
    {"simulated_s", &RoundRow::simulated_s},
    {"global_grad_norm_sq", &RoundRow::global_grad_norm_sq},
    {"density", &RoundRow::density},
    {"virtual_drift", &RoundRow::virtual_drift},
    {"measured_kappa", &RoundRow::measured_kappa},
    {"measured_delta", &RoundRow::measured_delta},
    {"measured_omega", &RoundRow::measured_omega},
    {"zeta_sq", &RoundRow::zeta_sq},
    {"residual_age", &RoundRow::residual_age},
    {"refused", &RoundRow::refused},
    {"perplexity", &RoundRow::perplexity},
    {"hit_rate_10", &RoundRow::hit_rate_10},
    {"ndcg_10", &RoundRow::ndcg_10},
    {"client_accuracy_mean", &RoundRow::client_accuracy_mean},
    {"client_accuracy_p10", &RoundRow::client_accuracy_p10},
    {"client_accuracy_p50", &RoundRow::client_accuracy_p50},
    {"client_accuracy_p90", &RoundRow::client_accuracy_p90},
    {"client_accuracy_worst", &RoundRow::client_accuracy_worst},
    {"client_accuracy_deviation", &RoundRow::client_accuracy_deviation},
    {"update_dissimilarity", &RoundRow::update_dissimilarity},
    {"client_drift", &RoundRow::client_drift},
    {"gradient_dissimilarity", &RoundRow::gradient_dissimilarity},
    {"average_f_gap", &RoundRow::average_f_gap},
});

// The columns before `refused` are in every round. The store keeps the others in a separate table, for rounds that have any of them.
inline constexpr std::size_t kCommonRoundColumns = 24;
static_assert(kRoundColumns[kCommonRoundColumns].name == "refused");

struct RunColumn {
  std::string_view name;
  std::variant<std::string RunRecord::*, std::uint64_t RunRecord::*, double RunRecord::*, RunStatus RunRecord::*> member;
};

// Every column of runs.csv before those of the sweep axes.
inline constexpr auto kRunColumns = std::to_array<RunColumn>({
    {"run", &RunRecord::run},
    {"name", &RunRecord::name},
    {"seed", &RunRecord::seed},
    {"status", &RunRecord::status},
    {"rounds", &RunRecord::rounds},
    {"bits_up", &RunRecord::bits_up},
    {"bits_down", &RunRecord::bits_down},
    {"train_loss", &RunRecord::train_loss},
    {"f_gap", &RunRecord::f_gap},
    {"test_accuracy", &RunRecord::test_accuracy},
    {"total_error", &RunRecord::total_error},
    {"zeta_sq", &RunRecord::zeta_sq},
    {"checksum", &RunRecord::checksum},
    {"seconds", &RunRecord::seconds},
});

// Further columns that the store keeps. `split_hash` is also the column of runs.csv after the axes.
inline constexpr auto kRunDetailColumns = std::to_array<RunColumn>({
    {"split_hash", &RunRecord::split_hash},
    {"scenario", &RunRecord::scenario},
    {"version", &RunRecord::version},
    {"cpu", &RunRecord::cpu},
    {"instruction_set", &RunRecord::instruction_set},
    {"compiler", &RunRecord::compiler},
    {"device", &RunRecord::device},
    {"threads", &RunRecord::threads},
    {"message", &RunRecord::message},
    {"parameters", &RunRecord::parameters},
    {"f_star", &RunRecord::f_star},
});

// Columns that mostly follow from other columns of the row and its run, so that the store can omit them. `sql` computes the column from the
// row `v` and its run `runs`; `value` computes it in C++. Both round alike.
struct DerivedColumn {
  std::string_view name, sql;
  double RoundRow::*member;
  double (*value)(const RoundRow&, const RunRecord&);
};
inline constexpr auto kDerivedColumns = std::to_array<DerivedColumn>({
    {"f_gap", "v.train_loss-runs.f_star", &RoundRow::f_gap,
     [](const RoundRow& row, const RunRecord& run) { return row.train_loss - run.f_star; }},
    {"density", "CAST(v.elements_up AS REAL)/(CAST(v.clients AS REAL)*runs.parameters)", &RoundRow::density,
     [](const RoundRow& row, const RunRecord& run) {
       const double entries = static_cast<double>(row.clients) * static_cast<double>(run.parameters);
       return entries > 0 ? static_cast<double>(row.elements_up) / entries : kNotMeasured;
     }},
    {"measured_delta", "1.0-v.measured_omega", &RoundRow::measured_delta,
     [](const RoundRow& row, const RunRecord&) { return 1.0 - row.measured_omega; }},
});

// The bits of the values of kRoundColumns.
using RoundBitsOfColumns = std::array<std::uint64_t, kRoundColumns.size()>;
[[nodiscard]] FL_API RoundBitsOfColumns bits_of_columns(const RoundRow& row);
FL_API void set_columns(RoundRow& row, const RoundBitsOfColumns& bits);
// Returns true if all columns of two rows, including those of measures, have the same bits.
[[nodiscard]] FL_API bool same_bits(const RoundRow& a, const RoundRow& b);

// Writes or reads rows with `num_more` values each in addition to kRoundColumns.
FL_API void persist(Archive& archive, std::vector<RoundRow>& rows, std::size_t num_more);
// Writes or reads a whole run. A worker process passes it to its parent in this form.
FL_API void persist(Archive& archive, RunRecord& record, std::vector<RoundRow>& rows);

}  // namespace fl
