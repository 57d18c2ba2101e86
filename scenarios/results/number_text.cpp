#include "scenarios/results/number_text.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace fl {

std::string short_text(double value) {
  if (std::isnan(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string human_bits(double bits) {
  static constexpr std::array kUnits = {" bit", " kbit", " Mbit", " Gbit", " Tbit", " Pbit", " Ebit"};
  if (std::isnan(bits)) return "-";
  std::size_t unit = 0;
  // 999.95 would be printed as 1000.
  for (; std::abs(bits) >= 999.95 && unit + 1 < kUnits.size(); ++unit) bits /= 1000;
  return short_text(bits) + kUnits[unit];
}

}  // namespace fl
