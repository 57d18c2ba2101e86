// The values of one key that are tried for one method: those of the file, and further ones beyond an end of them.
//
// Numbers have an order, and so have rules whose order does not depend on the problem's constants ("1/L", "10/L"). Such a grid goes on in
// geometric steps, by the ratio of the two values at the end that is extended:  v' = v_1 (v_1 / v_2).  A bound of the option is tried
// itself where the step would pass it, and ends the grid there. Other values (names, true and false) have no order and no ends.
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
  using Accepts = std::function<bool(const Value&)>;  // whether the scenario takes a value

  // `type` is that of the key in the schema ("number", "integer", "number or rule", ...).
  TuningGrid(TuneKey key, std::string type);

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }  // ascending where they have an order
  // Returns the end at which the value stands; nothing for one inside the grid, and for a grid without order or with a single value.
  [[nodiscard]] std::optional<Side> end_at(std::size_t place) const;

  // Adds a value beyond an end, at place 0 or the last one. Returns false if there is none, and why_ended() tells the reason.
  bool extend(Side side, const Accepts& accepts);
  // Returns why the grid does not go on: empty while it could.
  [[nodiscard]] const std::string& why_ended(Side side) const { return ended_[index(side)]; }
  // Returns true if the grid ends at a bound of the option, so that its outermost value is not a sign of a narrow grid.
  [[nodiscard]] bool is_at_bound(Side side) const { return is_bound_[index(side)]; }

 private:
  static std::size_t index(Side side) { return side == Side::low ? 0 : 1; }
  void sort();
  bool end(Side side, bool is_bound, std::string why);
  [[nodiscard]] std::optional<double> ratio(Side side) const;  // of the outermost value to the next
  [[nodiscard]] Value beyond(Side side, double ratio) const;
  [[nodiscard]] double bound_between(double inside, double outside, const Accepts& accepts) const;

  std::string key_, type_;
  std::vector<Value> values_;
  bool is_ordered_ = false;
  std::array<std::string, 2> ended_;
  std::array<bool, 2> is_bound_{};
};

}  // namespace fl
