#include "scenarios/measures/measure.hpp"

#include "fl_core/config/error.hpp"

namespace fl {

MeasureValue& MeasureRow::find(std::string_view column, MeasureColumn::Type type) {
  std::size_t place = 0;  // columns are mostly set in their order
  while (place < columns_.size() && values_[place].is_set) ++place;
  if (place == columns_.size() || columns_[place].name != column) place = place_of(columns_, column);
  if (place == columns_.size())
    throw Error("measure \"" + measure_ + "\" sets the column \"" + std::string(column) + "\", which it does not declare");
  if (columns_[place].type != type)
    throw Error("measure \"" + measure_ + "\" sets the column \"" + std::string(column) + "\" as a " + to_string(type) +
                " number, and declares it as a " + to_string(columns_[place].type) + " number");
  values_[place].is_set = true;
  return values_[place];
}

void MeasureRow::set(std::string_view column, double value) { find(column, MeasureColumn::Type::real).real = value; }
void MeasureRow::set_count(std::string_view column, std::uint64_t value) { find(column, MeasureColumn::Type::count).count = value; }

std::string text_of(const MeasureCost& cost) {
  std::string text;
  const auto add = [&text](bool has, const char* what) {
    if (has) text += (text.empty() ? "" : " and ") + std::string(what);
  };
  add(cost.rows, "a pass over rows");
  add(cost.gradients, "gradients of all rows");
  add(cost.messages, "norms of the round's messages");
  add(cost.memories, "the error memories of all clients");
  add(cost.updates, "a copy of the cohort's updates");
  return text.empty() ? "little" : text;
}

}  // namespace fl
