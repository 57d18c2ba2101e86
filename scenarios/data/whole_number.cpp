#include "scenarios/data/whole_number.hpp"

#include <charconv>
#include <string>

namespace fl {
namespace {

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> plain_number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Reads digits from the front of `text` and appends them to `digits`; returns how many there were.
std::int64_t take_digits(std::string_view& text, std::string& digits) {
  std::size_t count = 0;
  while (count < text.size() && is_decimal_digit(text[count])) ++count;
  digits += text.substr(0, count);
  text.remove_prefix(count);
  return static_cast<std::int64_t>(count);
}

// The exponent behind "e", from -10^6 to 10^6.
std::optional<std::int64_t> exponent_in(std::string_view text) {
  constexpr std::int64_t kMost = 1000000;
  if (text.empty()) return 0;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto exponent = plain_number(text);
  if (!exponent || *exponent > kMost || *exponent < -kMost) return std::nullopt;
  return exponent;
}

}  // namespace

std::optional<std::int64_t> whole_number_in(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (const auto plain = plain_number(text)) return plain;
  std::string digits;
  if (text.starts_with('-')) {
    digits = "-";
    text.remove_prefix(1);
  }
  const std::size_t sign = digits.size();
  std::int64_t count = take_digits(text, digits), decimals = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    decimals = take_digits(text, digits);
  }
  const auto exponent = exponent_in(text);
  if (count + decimals == 0 || !exponent) return std::nullopt;
  for (std::int64_t shift = *exponent - decimals; shift < 0 && digits.size() > sign; ++shift, digits.pop_back())
    if (digits.back() != '0') return std::nullopt;
  if (digits.find_first_not_of('0', sign) == std::string::npos) return 0;  // whatever its exponent
  constexpr std::int64_t kMostDigits = 19;
  if (*exponent - decimals > kMostDigits) return std::nullopt;
  for (std::int64_t shift = *exponent - decimals; shift > 0; --shift) digits += '0';
  return plain_number(digits);
}

}  // namespace fl
