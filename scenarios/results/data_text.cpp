#include "scenarios/results/data_text.hpp"

namespace fl {
namespace {

// Returns "1 row", "8,124 rows".
std::string counted(std::size_t count, const std::string& one, const std::string& many) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits + " " + (count == 1 ? one : many);
}

}  // namespace

std::string data_text(const std::string& name, std::size_t rows, std::size_t features, std::size_t classes, std::size_t test_rows) {
  std::string text = (name.empty() ? "" : name + ": ") + counted(rows, "row", "rows") + ", " + counted(features, "feature", "features");
  if (classes > 0) text += ", " + counted(classes, "class", "classes");
  if (test_rows > 0) text += "; " + counted(test_rows, "test row", "test rows");
  return text;
}

}  // namespace fl
