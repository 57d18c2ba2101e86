// The values of one key that tuning tries for one method: the values of the file, and further values beyond their ends.
//
// Numbers are ordered, and so are rules whose order does not depend on the problem's constants ("1/L", "10/L"). Such a grid continues in
// geometric steps, by the ratio of the two values at the extended end:  v' = v_1 (v_1 / v_2).  If a step would pass a bound of the option,
// the grid tries the bound itself and ends there. Other values (names, true and false) have no order and no ends.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/file/tune_settings.hpp"

namespace fl {

class FL_API TuningGrid {
 public:
  enum class Side { low, high };
  using Accepts = std::function<bool(const Value&)>;  // returns whether the scenario accepts a value

  // `type` is the type of the key in the schema ("number", "integer", "number or rule", ...).
  TuningGrid(TuneKey key, std::string type);

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }  // ascending where they have an order
  // Returns the end at which the value lies; nothing for a value inside the grid, for a grid without order and for a single value.
  [[nodiscard]] std::optional<Side> end_at(std::size_t place) const;

  // Adds a value beyond an end, at place 0 or the last one. Returns false if no value exists there; why_ended() then returns the reason.
  bool extend(Side side, const Accepts& accepts);
  // Returns the reason why the grid cannot be extended; empty if it can.
  [[nodiscard]] const std::string& why_ended(Side side) const { return ended_[index(side)]; }
  // Returns true if the grid ends at a bound of the option. An outermost best value then does not mean that the grid is too narrow.
  [[nodiscard]] bool is_at_bound(Side side) const { return is_bound_[index(side)]; }

 private:
  static std::size_t index(Side side) { return side == Side::low ? 0 : 1; }
  void sort();
  bool end(Side side, bool is_bound, std::string why);
  [[nodiscard]] std::optional<double> ratio(Side side) const;  // ratio of the outermost value to the next
  [[nodiscard]] Value beyond(Side side, double ratio) const;
  [[nodiscard]] double bound_between(double inside, double outside, const Accepts& accepts) const;

  std::string key_, type_;
  std::vector<Value> values_;
  bool is_ordered_ = false;
  std::array<std::string, 2> ended_;
  std::array<bool, 2> is_bound_{};
};

}  // namespace fl
