// One measure of a run as a function of rounds or bits.
//
// Between two measurements the value is the one measured last (a right-continuous step function): the value known to a reader who stops
// there. Bits are cumulative over all clients; downlink bits include the catch-up of absent clients.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// The horizontal axis of a trace. Seconds are simulated time, of runs with a clock. Bits are exact lengths. Uplink bits are also available
// as the method's paper counts them and as the lower bound of an ideal code, if every round of a run has these values.
enum class Against { round, bits_up, bits_both, bits_up_published, bits_up_entropy, seconds };
inline constexpr std::array kAgainst = {Against::round,           Against::bits_up, Against::bits_both, Against::bits_up_published,
                                        Against::bits_up_entropy, Against::seconds};
[[nodiscard]] constexpr const char* to_string(Against against) {
  switch (against) {
    case Against::round: return "rounds";
    case Against::bits_up: return "uplink bits";
    case Against::bits_both: return "bits up and down";
    case Against::bits_up_published: return "published uplink bits";
    case Against::bits_up_entropy: return "entropy bound of the uplink bits";
    case Against::seconds: return "simulated seconds";
  }
  return "rounds";
}

enum class Direction { lower_is_better, higher_is_better };
[[nodiscard]] constexpr Direction direction_of(const MeasureColumn& column) {
  return column.better == MeasureColumn::Better::higher ? Direction::higher_is_better : Direction::lower_is_better;
}

inline constexpr double kDivergenceFactor = 10;  // multiple of an objective's value at the start

struct RunTrace {
  std::array<std::vector<double>, kAgainst.size()> x;  // [measurements] each, ascending: places of the measurements
  std::vector<double> value;                           // [measurements]
  std::array<double, kAgainst.size()> end{};           // place at which the run ended, measured or not; NaN if bits are unknown
  std::array<double, kAgainst.size()> first{};         // end of the first round; before it the run is at its initial model
  // A run diverges if its objective (train_loss, f_gap, average_f_gap, test_loss) exceeds this value. Infinity for other measures.
  double diverged_above = std::numeric_limits<double>::infinity();

  [[nodiscard]] const std::vector<double>& places(Against against) const { return x[static_cast<std::size_t>(against)]; }
  [[nodiscard]] double end_of(Against against) const { return end[static_cast<std::size_t>(against)]; }

  [[nodiscard]] double first_of(Against against) const { return first[static_cast<std::size_t>(against)]; }
  // Returns true if every round has this kind of bits.
  [[nodiscard]] bool knows(Against against) const { return end_of(against) == end_of(against); }

  // Returns the index in `value` of the last measurement at or before `place`; nothing before the first measurement.
  [[nodiscard]] FL_API std::optional<std::size_t> last_at(Against against, double place) const;
  // Returns the value measured last at or before `place`; NaN before the first measurement.
  [[nodiscard]] FL_API double value_at(Against against, double place) const;
  // Returns the place at which the target was first measured as reached; infinity if it never was.
  [[nodiscard]] FL_API double first_reaching(Against against, double target, Direction direction) const;
};

// Makes the trace of a measure, named as a column of rounds.csv. Throws ConfigError for another name. An unmeasured round adds no point.
// `columns` are those that the run's measures add (RunRecord::columns); a run without the column has an empty trace if `is_optional`.
[[nodiscard]] FL_API RunTrace make_trace(const std::vector<RoundRow>& rows, std::string_view measure,
                                         double divergence_factor = kDivergenceFactor, std::span<const MeasureColumn> columns = {},
                                         bool is_optional = false);

// Returns true for a measured column that every run has.
[[nodiscard]] FL_API bool is_measure(std::string_view name);

}  // namespace fl
