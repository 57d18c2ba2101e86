#include "scenarios/results/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

// Returns the member of a measure; null for a column that is a count, or for an unknown name.
double RoundRow::*member_of(std::string_view measure) {
  for (const RoundColumn& column : kRoundColumns)
    if (const auto* member = std::get_if<double RoundRow::*>(&column.member); member != nullptr && column.name == measure) return *member;
  return nullptr;
}

// Returns the value above which a run has diverged: a multiple of the objective at the start. A gap is judged by the corresponding loss,
// because a run may start close to the optimum.
double divergence_limit(std::string_view measure, const std::vector<RoundRow>& rows, double first, double factor) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (measure == "train_loss" || measure == "test_loss") return first > 0 ? factor * first : kNone;
  if (measure != "f_gap" && measure != "average_f_gap") return kNone;
  const double loss = rows.front().train_loss, gap = rows.front().f_gap;
  if (loss > 0 && !std::isnan(gap)) return factor * loss - (loss - gap);
  return first > 0 && std::isnan(loss) ? factor * first : kNone;
}

}  // namespace

bool is_measure(std::string_view name) { return member_of(name) != nullptr; }

RunTrace make_trace(const std::vector<RoundRow>& rows, std::string_view measure, double divergence_factor,
                    std::span<const MeasureColumn> columns, bool is_optional) {
  double RoundRow::*const member = member_of(measure);
  const std::size_t place = place_of(columns, measure);
  if (member == nullptr && place == columns.size() && !is_optional)
    throw ConfigError("measure: '" + std::string(measure) + "' is not a measured column of rounds.csv");
  const auto value_of = [&](const RoundRow& row) {
    if (member != nullptr) return row.*member;
    return place < row.more.size() ? row.more[place] : kNotMeasured;
  };
  RunTrace trace;
  trace.first.fill(std::numeric_limits<double>::infinity());
  for (const RoundRow& row : rows) {
    const auto up = static_cast<double>(row.bits_up), down = static_cast<double>(row.bits_down);
    const auto estimated = [&row](double bits) { return row.bits_up == 0 && std::isnan(bits) ? 0 : bits; };  // no messages: no bits
    trace.end = {static_cast<double>(row.round),
                 trace.end[1] + up,
                 trace.end[2] + up + down,
                 trace.end[3] + estimated(row.bits_up_published),
                 trace.end[4] + estimated(row.bits_up_entropy),
                 row.simulated_s};
    if (row.round > 0 && std::isinf(trace.first[0])) trace.first = trace.end;
    const double value = value_of(row);
    const bool measured = !std::isnan(value);
    for (std::size_t i = 0; i < trace.x.size() && measured; ++i) trace.x[i].push_back(trace.end[i]);
    if (measured) trace.value.push_back(value);
  }
  if (!trace.value.empty()) trace.diverged_above = divergence_limit(measure, rows, trace.value.front(), divergence_factor);
  return trace;
}

std::optional<std::size_t> RunTrace::last_at(Against against, double place) const {
  const std::vector<double>& all = places(against);
  if (!knows(against)) return std::nullopt;
  const auto after = std::ranges::upper_bound(all, place);
  if (after == all.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - all.begin()) - 1;
}

double RunTrace::value_at(Against against, double place) const {
  const std::optional<std::size_t> index = last_at(against, place);
  return index ? value[*index] : kNotMeasured;
}

double RunTrace::first_reaching(Against against, double target, Direction direction) const {
  for (std::size_t i = 0; i < value.size(); ++i)
    if (direction == Direction::lower_is_better ? value[i] <= target : value[i] >= target) return places(against)[i];
  return std::numeric_limits<double>::infinity();
}

}  // namespace fl
