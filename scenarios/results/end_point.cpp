#include "scenarios/results/end_point.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace fl {
namespace {

constexpr double kRounding = 1e-12;  // relative: places that differ by less are the same place

// A constant piece of the step function inside a window.
struct Piece {
  double from = 0, to = 0, value = 0;
};

// Returns the pieces of v between two places; empty if v has no value at the first place.
std::vector<Piece> pieces_between(const RunTrace& trace, Against against, double from, double to) {
  std::vector<Piece> pieces;
  const std::optional<std::size_t> first = trace.last_at(against, from);
  if (!first) return pieces;
  const std::vector<double>& places = trace.places(against);
  for (std::size_t i = *first; i < places.size(); ++i) {
    const Piece piece{std::max(places[i], from), i + 1 < places.size() ? std::min(places[i + 1], to) : to, trace.value[i]};
    if (piece.to > piece.from) pieces.push_back(piece);
  }
  return pieces;
}

double mean_between(std::span<const Piece> pieces, double from, double to) {
  double sum = 0;
  for (const Piece& piece : pieces) {
    const double length = std::min(piece.to, to) - std::max(piece.from, from);
    if (length > 0) sum += length * piece.value;
  }
  return sum / (to - from);
}

double deviation_from(std::span<const Piece> pieces, double mean) {
  double sum = 0;
  for (const Piece& piece : pieces) sum += (piece.to - piece.from) * (piece.value - mean) * (piece.value - mean);
  return std::sqrt(sum / (pieces.back().to - pieces.front().from));
}

// Returns the last value at each place within [from, to].
std::vector<double> evaluations_within(const RunTrace& trace, Against against, double from, double to) {
  std::vector<double> values;
  const std::vector<double>& places = trace.places(against);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] >= from && places[i] <= to && (i + 1 == places.size() || places[i + 1] > places[i])) values.push_back(trace.value[i]);
  return values;
}

// Counts how often consecutive values change sides of their mean. A value equal to the mean stays on the side of the value before it.
std::size_t changes_of_side(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  std::size_t changes = 0;
  double side = 0;
  for (const double value : values) {
    if (value == mean) continue;
    const double now = value > mean ? 1 : -1;
    if (side * now < 0) ++changes;
    side = now;
  }
  return changes;
}

bool alternates(const std::vector<double>& values) {
  if (values.size() < kLeastEvaluations) return false;
  const auto steps = static_cast<double>(values.size() - 1);
  return static_cast<double>(changes_of_side(values)) >= std::max(0.75 * steps, steps / 2 + std::sqrt(steps));
}

}  // namespace

EndPoint end_point(const RunTrace& trace, Against against, double budget, double window) {
  EndPoint end;
  const double slack = kRounding * budget;
  if (!(budget > 0) || !(trace.end_of(against) >= budget - slack)) return end;
  const double from = budget - window * budget, middle = budget - window * budget / 2;
  const std::vector<double> values = evaluations_within(trace, against, from - slack, budget + slack);
  const std::vector<Piece> pieces = pieces_between(trace, against, from, budget);
  end.num_evaluations = values.size();
  end.at_start = trace.first_of(against) > budget + slack;
  end.last = trace.value_at(against, budget);
  if (pieces.empty()) return end;
  end.value = mean_between(pieces, from, budget);
  end.deviation = deviation_from(pieces, end.value);
  end.net_change = mean_between(pieces, middle, budget) - mean_between(pieces, from, middle);
  end.diverges = !std::isfinite(end.value) || end.value > trace.diverged_above;
  const bool beyond_rounding = end.deviation > kRounding * std::abs(end.value);
  end.oscillates = beyond_rounding && end.deviation > std::abs(end.net_change) && alternates(values);
  return end;
}

std::string why_no_claim(const EndPoint& end, double window, Against against) {
  if (end.carries_claim()) return {};
  if (end.diverges) return "not finite there";
  if (std::isnan(end.value)) return "not measured there";
  if (end.at_start) return "still at its initial model, because its first round costs more";
  const std::string share = std::to_string(std::lround(100 * window)) + "%";
  return std::to_string(end.num_evaluations) + (end.num_evaluations == 1 ? " evaluation" : " evaluations") + " in the last " + share +
         (against == Against::seconds ? " of the time; a claim needs " : " of the bits; a claim needs ") +
         std::to_string(kLeastEvaluations) + " or more";
}

}  // namespace fl
