// Comparisons of two results word by word. A failure prints one line first, which says what was compared and where it differs, and then
// GoogleTest's own text:
//
//   FIRST DIFFERENCE: operator top_k(ratio = 0.1), pattern ties, K 3, P 1000, float32, state: [17] is 0x3f800000 (1) on the CPU and
//   0x3f800001 (1.0000001) on the GPU; 5 of 3000 differ
//
// Usage:   EXPECT_TRUE(same_words(where, "state", cpu, gpu));
//
// Arrays are std::vector, Buffer, std::span or std::string in the host's memory. This header needs no CUDA.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace fl::test {

template <class T>
inline constexpr const char* kPrecisionName = sizeof(T) == sizeof(float) ? "float32" : "float64";

// The work whose results are compared. The line leaves out empty and zero fields.
struct Where {
  std::string what{};     // an operator with its options, an operation, a study
  std::string pattern{};  // of the inputs
  std::size_t K = 0, P = 0;
  std::string precision{};
  std::string more{};  // segments, rules, rounds
  std::string on_first = "on the CPU", on_second = "on the GPU";

  // Returns a copy that also says `addition`.
  [[nodiscard]] Where with(const std::string& addition) const {
    Where where = *this;
    where.more += (more.empty() || addition.empty() ? "" : ", ") + addition;
    return where;
  }
  // Returns a copy with other names for the two results.
  [[nodiscard]] Where between(const std::string& first, const std::string& second) const {
    Where where = *this;
    where.on_first = first;
    where.on_second = second;
    return where;
  }
};

namespace detail {

template <std::size_t bytes>
using Word =
    std::conditional_t<bytes == 1, std::uint8_t,
                       std::conditional_t<bytes == 2, std::uint16_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
[[nodiscard]] Word<sizeof(T)> bits_of(T x) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  Word<sizeof(T)> bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

// Returns the shortest decimal text that reads as the same number.
template <class T>
[[nodiscard]] std::string decimal_text(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<std::underlying_type_t<T>>(x));
  } else {
    return std::to_string(x);
  }
}

// Returns "0x3f800000 (1)".
template <class T>
[[nodiscard]] std::string word_text(T x) {
  char hex[2 + 2 * sizeof(T) + 1];
  std::snprintf(hex, sizeof hex, "0x%0*llx", static_cast<int>(2 * sizeof(T)), static_cast<unsigned long long>(bits_of(x)));
  return hex + (" (" + decimal_text(x)) + ")";
}

template <class T>
[[nodiscard]] bool are_both_nan(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(a) && std::isnan(b);
  else
    return false;
}

// Returns "FIRST DIFFERENCE: WHERE, NAME: ".
[[nodiscard]] inline std::string beginning(const Where& where, const std::string& name) {
  std::string text;
  const auto add = [&text](const std::string& label, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : ", ") + label + value;
  };
  add("", where.what);
  add("pattern ", where.pattern);
  add("K ", where.K > 0 ? std::to_string(where.K) : "");
  add("P ", where.P > 0 ? std::to_string(where.P) : "");
  add("", where.precision);
  add("", where.more);
  add("", name);
  return "FIRST DIFFERENCE: " + text + ": ";
}
[[nodiscard]] inline std::string both(const Where& where, const std::string& first, const std::string& second) {
  return first + ' ' + where.on_first + " and " + second + ' ' + where.on_second;
}

// Compares entries by same(a, b). Returns the line without its end, or "" if all are the same. `by` follows the number of differences.
template <class T, class Same>
[[nodiscard]] std::string first_difference(const Where& where, const std::string& name, std::span<const T> a, std::span<const T> b,
                                           const Same& same, const std::string& by = "") {
  const std::size_t common = std::min(a.size(), b.size());
  std::size_t first = common, count = 0;
  for (std::size_t i = 0; i < common; ++i) {
    if (same(a[i], b[i])) continue;
    if (count == 0) first = i;
    ++count;
  }
  if (count == 0 && a.size() == b.size()) return "";
  std::string line = beginning(where, name);
  if (a.size() != b.size()) line += both(where, std::to_string(a.size()) + " entries", std::to_string(b.size()) + " entries");
  if (a.size() != b.size() && count > 0) line += "; ";
  if (count > 0)
    line += '[' + std::to_string(first) + "] is " + both(where, word_text(a[first]), word_text(b[first])) + "; " + std::to_string(count) +
            " of " + std::to_string(common) + " differ" + by;
  return line;
}

template <class A>
[[nodiscard]] auto span_of(const A& array) {
  return std::span<const typename A::value_type>(array.data(), array.size());
}
template <class A>
requires(!requires { typename A::value_type; }) [[nodiscard]] auto span_of(const A& buffer) { return buffer.span(); }

}  // namespace detail

// Returns success for an empty line. Else prints the line, on one line whatever its texts contain, and returns it as a failure.
[[nodiscard]] inline testing::AssertionResult difference(std::string line) {
  if (line.empty()) return testing::AssertionSuccess();
  std::ranges::replace(line, '\n', ' ');
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  return testing::AssertionFailure() << line;
}

// Compares all bits.
template <class A, class B>
[[nodiscard]] testing::AssertionResult same_words(const Where& where, const std::string& name, const A& a, const B& b) {
  return difference(detail::first_difference(where, name, detail::span_of(a), detail::span_of(b),
                                             [](auto x, auto y) { return detail::bits_of(x) == detail::bits_of(y); }));
}

// Compares all bits, but two NaN are the same whatever their payload, which processors choose differently.
template <class A, class B>
[[nodiscard]] testing::AssertionResult same_numbers(const Where& where, const std::string& name, const A& a, const B& b) {
  return difference(detail::first_difference(where, name, detail::span_of(a), detail::span_of(b), [](auto x, auto y) {
    return detail::bits_of(x) == detail::bits_of(y) || detail::are_both_nan(x, y);
  }));
}

// Entries may differ by up to `bound`. NaN is near NaN alone.
template <class A, class B>
[[nodiscard]] testing::AssertionResult near_numbers(const Where& where, const std::string& name, const A& a, const B& b, double bound) {
  const auto is_near = [bound](auto x, auto y) {
    return x == y || detail::are_both_nan(x, y) || std::fabs(static_cast<double>(x) - static_cast<double>(y)) <= bound;
  };
  return difference(detail::first_difference(where, name, detail::span_of(a), detail::span_of(b), is_near,
                                             " by more than the bound of " + detail::decimal_text(bound)));
}

// Returns |a - b| / |b|.
template <class A, class B>
[[nodiscard]] double relative_error(const A& a, const B& b) {
  double off = 0, size = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    off += std::pow(static_cast<double>(a[j]) - static_cast<double>(b[j]), 2);
    size += std::pow(static_cast<double>(b[j]), 2);
  }
  return std::sqrt(off / size);
}

// Compares vectors by their relative error |b - a| / |a| <= bound. The line counts the entries that are off by more than an equal share of
// it, bound |a| / sqrt(n): some entry is if the error is above the bound.
template <class A, class B>
[[nodiscard]] testing::AssertionResult near_vectors(const Where& where, const std::string& name, const A& a, const B& b, double bound) {
  if (a.size() != b.size()) return same_words(where, name, a, b);
  const double error = relative_error(b, a);
  if (error <= bound) return testing::AssertionSuccess();
  double size = 0;
  for (const auto x : a) size += static_cast<double>(x) * static_cast<double>(x);
  const double share = bound * std::sqrt(size / static_cast<double>(a.size()));
  const auto is_near = [share](auto x, auto y) { return std::fabs(static_cast<double>(x) - static_cast<double>(y)) <= share; };
  const std::string whole = name + ", relative error " + detail::decimal_text(error) + " above the bound of " + detail::decimal_text(bound);
  const std::string line = detail::first_difference(where, whole, detail::span_of(a), detail::span_of(b), is_near,
                                                    " by more than " + detail::decimal_text(share));
  return difference(line.empty() ? detail::beginning(where, whole) + "no entry is off by more than its share" : line);
}

// Compares two numbers, enumerators or texts (checksums) by ==.
template <class T>
[[nodiscard]] testing::AssertionResult same_value(const Where& where, const std::string& name, const T& a,
                                                  const std::type_identity_t<T>& b) {
  if (a == b) return testing::AssertionSuccess();
  if constexpr (std::is_convertible_v<T, std::string>)
    return difference(detail::beginning(where, name) + detail::both(where, a, b));
  else
    return difference(detail::beginning(where, name) + detail::both(where, detail::word_text(a), detail::word_text(b)));
}

// Compares two numbers, which may differ by up to `bound`.
[[nodiscard]] inline testing::AssertionResult near_value(const Where& where, const std::string& name, double a, double b, double bound) {
  if (std::fabs(a - b) <= bound) return testing::AssertionSuccess();
  return difference(detail::beginning(where, name) + detail::both(where, detail::word_text(a), detail::word_text(b)) +
                    "; they differ by more than the bound of " + detail::decimal_text(bound));
}

}  // namespace fl::test
