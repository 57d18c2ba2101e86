// One run's measure against rounds and against bits.
//
// Between two measurements the value is the one measured last (a step function that is right-continuous): what somebody who stops there
// knows. Bits are cumulative, all clients together; those of the downlink include the catch-up of absent clients.
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

// What a measure is followed against. Bits are exact lengths; those up also as the method's paper counts them, and as the lower bound of an
// ideal code, where every round of a run has them.
enum class Against { round, bits_up, bits_both, bits_up_published, bits_up_entropy };
inline constexpr std::array kAgainst = {Against::round, Against::bits_up, Against::bits_both, Against::bits_up_published,
                                        Against::bits_up_entropy};
[[nodiscard]] constexpr const char* to_string(Against against) {
  switch (against) {
    case Against::round: return "rounds";
    case Against::bits_up: return "uplink bits";
    case Against::bits_both: return "bits up and down";
    case Against::bits_up_published: return "published uplink bits";
    case Against::bits_up_entropy: return "entropy bound of the uplink bits";
  }
  return "rounds";
}

enum class Direction { lower_is_better, higher_is_better };
[[nodiscard]] constexpr Direction direction_of(const MeasureColumn& column) {
  return column.better == MeasureColumn::Better::higher ? Direction::higher_is_better : Direction::lower_is_better;
}

inline constexpr double kDivergenceFactor = 10;  // of an objective's value at the start

struct RunTrace {
  std::array<std::vector<double>, kAgainst.size()> x;  // [measurements] each, ascending: where it was measured
  std::vector<double> value;                           // [measurements]
  std::array<double, kAgainst.size()> end{};           // where the run ended, measured there or not; NaN where bits are unknown
  std::array<double, kAgainst.size()> first{};         // where its first round ended; the run stands at its initial model before
  // An objective that stands above this has diverged: train_loss, f_gap, average_f_gap, test_loss. Infinity for other measures.
  double diverged_above = std::numeric_limits<double>::infinity();

  [[nodiscard]] const std::vector<double>& places(Against against) const { return x[static_cast<std::size_t>(against)]; }
  [[nodiscard]] double end_of(Against against) const { return end[static_cast<std::size_t>(against)]; }

  [[nodiscard]] double first_of(Against against) const { return first[static_cast<std::size_t>(against)]; }
  // Returns true where every round has this kind of bits.
  [[nodiscard]] bool knows(Against against) const { return end_of(against) == end_of(against); }

  // The place in `value` of the last measurement at or before `place`; none before the first.
  [[nodiscard]] FL_API std::optional<std::size_t> last_at(Against against, double place) const;
  // Its value; NaN before the first.
  [[nodiscard]] FL_API double value_at(Against against, double place) const;
  // Where the target was first measured as reached; infinity when it never was.
  [[nodiscard]] FL_API double first_reaching(Against against, double target, Direction direction) const;
};

// The measure named as a column of rounds.csv; ConfigError for another name. What was not measured leaves no point. `columns` are those
// that the run's measures add (RunRecord::columns); a run without the column has a trace without points if `is_optional`.
[[nodiscard]] FL_API RunTrace make_trace(const std::vector<RoundRow>& rows, std::string_view measure,
                                         double divergence_factor = kDivergenceFactor, std::span<const MeasureColumn> columns = {},
                                         bool is_optional = false);

// Returns true for a measured column that every run has.
[[nodiscard]] FL_API bool is_measure(std::string_view name);

}  // namespace fl
