// Numbers as text: exact for files, short for people.
#pragma once

#include <cstdint>
#include <string>

namespace fl {

// The shortest decimal text that reads back as the same double; whole numbers below 2^53 without an exponent; "" for NaN (not measured).
[[nodiscard]] std::string exact_text(double value);
void append_exact(std::string& text, double value);  // the same at the end of a text

// Four significant digits: "0.3184", "1.23e-09"; "-" for NaN.
[[nodiscard]] std::string short_text(double value);

// A mean to the second digit of its half width: "0.85310 +- 0.00042", "3.18e-09 +- 1.2e-10"; the mean alone when the width is NaN.
[[nodiscard]] std::string plus_minus(double mean, double half_width);

// Decimal prefixes, four significant digits: "976 bit", "1.234 Mbit"; "-" for NaN.
[[nodiscard]] std::string human_bits(double bits);

// "12.3 s", "4:05", "1:02:03".
[[nodiscard]] std::string human_seconds(double seconds);

// How many columns a UTF-8 text takes when each code point takes one.
[[nodiscard]] std::size_t display_width(const std::string& text);

// At most `width` columns of the text.
[[nodiscard]] std::string clip(const std::string& text, std::size_t width);

// The text in a line of its own: control characters become spaces.
[[nodiscard]] std::string one_line(std::string text);

}  // namespace fl
