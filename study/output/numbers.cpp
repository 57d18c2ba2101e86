#include "study/output/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace fl {
namespace {

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

void append_exact(std::string& text, double value) {
  if (std::isnan(value)) return;
  char digits[64];
  const bool is_whole = std::abs(value) < 0x1p53 && value == std::trunc(value);
  const bool is_integer = is_whole && !(value == 0 && std::signbit(value));  // an integer has no -0
  const std::to_chars_result end = is_integer ? std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(value))
                                   : is_whole ? std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed)
                                              : std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end.ptr);
}

std::string exact_text(double value) {
  std::string text;
  append_exact(text, value);
  return text;
}

std::string plus_minus(double mean, double half_width) {
  if (std::isnan(mean) || std::isnan(half_width)) return short_text(mean);
  if (half_width == 0 || mean == 0 || !std::isfinite(mean) || !std::isfinite(half_width))
    return short_text(mean) + " +- " + short_text(half_width);
  const int mean_exponent = static_cast<int>(std::floor(std::log10(std::abs(mean))));
  const int width_exponent = static_cast<int>(std::floor(std::log10(half_width)));
  char text[96];
  if (mean_exponent >= -4 && mean_exponent < 6 && width_exponent >= -7) {
    const int decimals = std::max(0, 1 - width_exponent);
    std::snprintf(text, sizeof text, "%.*f +- %.*f", decimals, mean, decimals, half_width);
  } else {
    std::snprintf(text, sizeof text, "%.*e +- %.1e", std::clamp(mean_exponent - width_exponent + 1, 1, 15), mean, half_width);
  }
  return text;
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 59.95) return printed("%.1f s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  char text[64];
  if (whole < 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return text;
}

std::size_t display_width(const std::string& text) {
  std::size_t width = 0;
  for (const char byte : text) width += is_continuation(byte) ? 0 : 1;
  return width;
}

std::string clip(const std::string& text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end) {
    if (is_continuation(text[end])) continue;
    if (columns == width) break;
    ++columns;
  }
  return text.substr(0, end);
}

std::string one_line(std::string text) {
  for (char& byte : text)
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) byte = ' ';
  return text;
}

std::string shown_label(const std::string& label, std::size_t most) {
  const std::string line = one_line(label);
  const std::size_t width = display_width(line);
  if (width <= most) return line;
  constexpr std::size_t kEllipsis = 3;
  const std::size_t head = (most - kEllipsis) / 2, tail = most - kEllipsis - head;
  const std::string before_tail = clip(line, width - tail);
  return clip(line, head) + "..." + line.substr(before_tail.size());
}

}  // namespace fl
