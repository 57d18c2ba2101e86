#include "scenarios/sweep/tuning_grid.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>

#include "fl_core/config/expression.hpp"
#include "fl_core/random/random.hpp"

namespace fl {
namespace {

constexpr const char* kRule = "number or rule";
constexpr int kProbes = 3;           // sets of constants at which rules are compared
constexpr double kSameRatio = 1e-9;  // relative
constexpr int kBisections = 64;

// Rounds to twelve digits, so that 0.3 * 3 reads 0.9.
double readable(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", x);
  return std::strtod(text, nullptr);
}

// Returns arbitrary positive values for the names in a rule, different ones for each probe.
std::map<std::string, double> constants_of(const std::string& rule, int probe) {
  std::map<std::string, double> constants;
  const auto belongs = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t i = 0; i < rule.size();) {
    std::size_t end = i;
    while (end < rule.size() && belongs(rule[end])) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    const std::string name = rule.substr(i, end - i);
    std::uint64_t hash = static_cast<std::uint64_t>(probe) + 1;
    for (const char c : name) hash = hash64(hash, static_cast<unsigned char>(c));
    constants[name] = 0.5 + static_cast<double>(hash >> 11) * 0x1p-53 * 10;
    i = end;
  }
  return constants;
}

// Returns the number that a value evaluates to with the constants of a probe; nothing for a name.
std::optional<double> number_at(const Value& value, bool takes_rules, int probe) {
  if (const auto* i = std::get_if<std::int64_t>(&value.data)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value.data)) return *d;
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr || !takes_rules) return std::nullopt;
  try {
    return Expression(*text).resolve(constants_of(*text, probe));
  } catch (const ConfigError&) {
    return std::nullopt;  // these constants make the rule infinite
  }
}

bool is_plain_number(const Value& value) {
  return std::holds_alternative<double>(value.data) || std::holds_alternative<std::int64_t>(value.data);
}

}  // namespace

TuningGrid::TuningGrid(TuneKey key, std::string type) : key_(std::move(key.key)), type_(std::move(type)), values_(std::move(key.values)) {
  sort();
}

// Sorts the values if they have the same order at every probe. Removes duplicates.
void TuningGrid::sort() {
  const auto same = [](const Value& a, const Value& b) { return to_string(a) == to_string(b); };
  for (std::size_t i = 0; i < values_.size(); ++i)
    values_.erase(std::remove_if(values_.begin() + static_cast<std::ptrdiff_t>(i) + 1, values_.end(),
                                 [&](const Value& later) { return same(values_[i], later); }),
                  values_.end());
  std::vector<std::size_t> first_order;
  for (int probe = 0; probe < kProbes; ++probe) {
    std::vector<double> numbers;
    for (const Value& value : values_) {
      const std::optional<double> number = number_at(value, type_ == kRule, probe);
      if (!number) return;
      numbers.push_back(*number);
    }
    std::vector<std::size_t> order(values_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&numbers](std::size_t i) { return numbers[i]; });
    if (probe > 0 && order != first_order) return;
    first_order = std::move(order);
  }
  std::vector<Value> sorted;
  for (const std::size_t i : first_order) sorted.push_back(std::move(values_[i]));
  values_ = std::move(sorted);
  is_ordered_ = true;
}

std::optional<TuningGrid::Side> TuningGrid::end_at(std::size_t place) const {
  if (!is_ordered_ || values_.size() < 2) return std::nullopt;
  if (place == 0) return Side::low;
  return place + 1 == values_.size() ? std::optional(Side::high) : std::nullopt;
}

bool TuningGrid::end(Side side, bool is_bound, std::string why) {
  ended_[index(side)] = std::move(why);
  is_bound_[index(side)] = is_bound;
  return false;
}

std::optional<double> TuningGrid::ratio(Side side) const {
  const std::size_t last = values_.size() - 1;
  const Value &outer = values_[side == Side::low ? 0 : last], &inner = values_[side == Side::low ? 1 : last - 1];
  std::optional<double> found;
  for (int probe = 0; probe < kProbes; ++probe) {
    const double a = *number_at(outer, type_ == kRule, probe), b = *number_at(inner, type_ == kRule, probe);
    if (!(a > 0) || !(b > 0) || a == b) return std::nullopt;
    if (found && std::fabs(a / b / *found - 1) > kSameRatio) return std::nullopt;
    if (!found) found = a / b;
  }
  return found;
}

Value TuningGrid::beyond(Side side, double ratio) const {
  const Value& outer = side == Side::low ? values_.front() : values_.back();
  if (!is_plain_number(outer)) return Value{to_string(Value{readable(ratio)}) + "*(" + std::get<std::string>(outer.data) + ")"};
  const double next = readable(*number_at(outer, false, 0) * ratio);
  return type_ == "integer" ? Value{static_cast<std::int64_t>(std::llround(next))} : Value{next};
}

// Returns the outermost accepted number, found by bisection; `inside` if the bound itself is not accepted.
double TuningGrid::bound_between(double inside, double outside, const Accepts& accepts) const {
  const bool whole = type_ == "integer";
  const auto takes = [&](double x) { return accepts(whole ? Value{static_cast<std::int64_t>(x)} : Value{x}); };
  double accepted = inside, refused = outside;
  for (int step = 0; step < kBisections; ++step) {
    const double middle = whole ? std::trunc((accepted + refused) / 2) : (accepted + refused) / 2;
    if (middle == accepted || middle == refused) break;
    (takes(middle) ? accepted : refused) = middle;
  }
  const double bound = readable(accepted);
  return takes(bound) && std::fabs(bound - refused) < kSameRatio * std::fabs(bound) + (whole ? 1.5 : 0) ? bound : inside;
}

bool TuningGrid::extend(Side side, const Accepts& accepts) {
  if (!why_ended(side).empty()) return false;
  const std::optional<double> step = ratio(side);
  const bool is_zero = side == Side::low && is_plain_number(values_.front()) && number_at(values_.front(), false, 0) == 0.0;
  if (is_zero && !accepts(type_ == "integer" ? Value{std::int64_t{-1}} : Value{-std::numeric_limits<double>::min()}))
    return end(side, true, "0 is a bound of the option");
  if (!step) return end(side, false, "its two outermost values have no ratio that is known before the run");
  const Value& outer = side == Side::low ? values_.front() : values_.back();
  Value next = beyond(side, *step);
  if (to_string(next) == to_string(outer)) return end(side, true, "there is no further whole number at its ratio");
  if (!accepts(next)) {
    if (!is_plain_number(outer)) return end(side, true, "the option does not take " + to_string(next));
    const double inside = *number_at(outer, false, 0), bound = bound_between(inside, *number_at(next, false, 0), accepts);
    if (bound == inside) return end(side, true, to_string(outer) + " is next to a bound of the option");
    next = type_ == "integer" ? Value{static_cast<std::int64_t>(bound)} : Value{bound};
    (void)end(side, true, to_string(next) + " is a bound of the option");
  }
  values_.insert(side == Side::low ? values_.begin() : values_.end(), std::move(next));
  return true;
}

}  // namespace fl
