// Formats numbers: exactly for files, briefly for people.
#pragma once

#include <cstdint>
#include <string>

#include "fl_core/config/device.hpp"
#include "scenarios/results/number_text.hpp"  // short_text, human_bits

namespace fl {

// Returns the shortest decimal text that reads back as the same double; integers below 2^53 without an exponent; "" for NaN (not measured).
[[nodiscard]] FL_API std::string exact_text(double value);
FL_API void append_exact(std::string& text, double value);  // appends exact_text(value)

// Returns a mean to the second digit of its half width: "0.85310 +- 0.00042", "3.18e-09 +- 1.2e-10"; the mean alone if the width is NaN.
[[nodiscard]] FL_API std::string plus_minus(double mean, double half_width);

// Returns "12.3 s", "4:05", "1:02:03".
[[nodiscard]] FL_API std::string human_seconds(double seconds);

// Returns the width of a UTF-8 text in columns, one per code point.
[[nodiscard]] FL_API std::size_t display_width(const std::string& text);

// Returns at most the first `width` columns of the text.
[[nodiscard]] FL_API std::string clip(const std::string& text, std::size_t width);

// Returns the text on a single line: control characters become spaces.
[[nodiscard]] FL_API std::string one_line(std::string text);

// Returns the label of an axis as tables and lines show it: on a single line, of at most `most` columns. The middle
// of a longer one is replaced by "...". Files (export, --json, the report's page) have the whole label.
inline constexpr std::size_t kMostLabelColumns = 80, kMostTitleColumns = 200;
[[nodiscard]] FL_API std::string shown_label(const std::string& label, std::size_t most = kMostLabelColumns);
// Does the same for the labels of several axes together.
[[nodiscard]] inline std::string shown_title(const std::string& labels) { return shown_label(labels, kMostTitleColumns); }

}  // namespace fl
