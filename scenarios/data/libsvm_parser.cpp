#include "scenarios/data/libsvm_parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "scenarios/data/whole_number.hpp"

namespace fl {
namespace {

constexpr std::uint64_t kMaxIndex = std::uint64_t{1} << 31;  // of a feature, from 1
constexpr std::size_t kMaxRows = std::numeric_limits<std::uint32_t>::max();

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits with at most one point and no exponent, 15 of them at most: both parts are exact in a double, so one division rounds correctly.
// Returns where the number ends, or null when it is not of this kind.
const char* read_short_decimal(const char* next, const char* end, double& value) {
  static constexpr std::array<double, 16> kTens = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char* begin = next;
  const bool negative = next != end && *next == '-';
  if (negative) ++next;
  std::uint64_t digits = 0;
  const char* first = next;
  for (; next != end && is_digit(*next); ++next) digits = digits * 10 + static_cast<std::uint64_t>(*next - '0');
  std::size_t count = static_cast<std::size_t>(next - first), decimals = 0;
  if (next != end && *next == '.') {
    first = ++next;
    for (; next != end && is_digit(*next); ++next) digits = digits * 10 + static_cast<std::uint64_t>(*next - '0');
    decimals = static_cast<std::size_t>(next - first);
    count += decimals;
  }
  if (count == 0 || count > 15 || next == begin || (next != end && (*next == 'e' || *next == 'E'))) return nullptr;
  value = static_cast<double>(digits) / kTens[decimals];
  if (negative) value = -value;
  return next;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 32;
  std::string out;
  for (const char c : text.substr(0, kLongest)) {
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      char code[8];
      std::snprintf(code, sizeof(code), "\\x%02x", static_cast<unsigned char>(c));
      out += code;
    }
  }
  return text.size() > kLongest ? out + "..." : out;
}

}  // namespace

template <class T>
LibsvmParser<T>::LibsvmParser(std::string_view text, const std::string& file_name, const LibsvmFormat& format)
    : next_(text.data()), end_(text.data() + text.size()), line_begin_(text.data()), file_name_(file_name), format_(format) {
  for (const std::string& name : format.class_names) known_labels_.push_back(whole_number_in(name).value());
  rows_.row_begin.push_back(0);
}

template <class T>
LibsvmRows<T> LibsvmParser<T>::parse() {
  while (next_ != end_) {
    check_for_stop();
    parse_line();
    if (next_ != end_) ++next_;
    line_begin_ = next_;
    ++line_;
  }
  if (num_rows_ == 0) throw DataError(file_name_ + ": there is not one row in the file");
  return std::move(rows_);
}

template <class T>
void LibsvmParser<T>::parse_line() {
  skip_blanks();
  if (!at_line_end()) {
    parse_label();
    last_index_ = 0;
    while (parse_entry()) {
    }
    rows_.row_begin.push_back(rows_.column.size());
    if (num_rows_ > kMaxRows) fail(line_begin_, "more than " + std::to_string(kMaxRows) + " rows");
  }
  while (next_ != end_ && *next_ != '\n') ++next_;
}

template <class T>
void LibsvmParser<T>::parse_label() {
  const char* at = next_;
  const double label = parse_number("label");
  if (next_ != end_ && !is_blank(*next_) && *next_ != '\n')
    fail(at, "the label must be one number followed by a blank, got \"" + printable({at, token_end()}) + "\"");
  ++num_rows_;
  if (format_.labels == LabelKind::target)
    rows_.target.push_back(label);
  else
    rows_.label.push_back(class_of({at, next_}, at));
}

// Labels of classes are whole numbers of 64 bits; none is rounded, so that those that differ stay different classes.
template <class T>
std::int64_t LibsvmParser<T>::class_of(std::string_view text, const char* at) const {
  const auto label = whole_number_in(text);
  if (!label)
    fail(at, "the label " + printable(text) + " is not a whole number of 64 bits; for regression read the file with labels = \"target\"");
  if (!known_labels_.empty() && !std::binary_search(known_labels_.begin(), known_labels_.end(), *label))
    fail(at, "the label " + printable(text) + " is not one of the training set's classes");
  return *label;
}

template <class T>
bool LibsvmParser<T>::parse_entry() {
  skip_blanks();
  if (at_line_end()) return false;
  const std::uint32_t index = parse_index();
  const T value = parse_value();
  rows_.num_features = std::max<std::size_t>(rows_.num_features, index);
  last_index_ = index;
  if (value != 0) store(index - 1, value);
  return true;
}

template <class T>
std::uint32_t LibsvmParser<T>::parse_index() {
  const char* at = next_;
  std::uint64_t index = 0;
  for (; next_ != end_ && is_digit(*next_) && index <= kMaxIndex; ++next_) index = index * 10 + static_cast<std::uint64_t>(*next_ - '0');
  if (index > kMaxIndex) fail(at, "the feature index " + printable({at, token_end()}) + " is above 2^31");
  if (next_ == at) fail(at, "a feature index was expected, got \"" + token() + "\"");
  if (next_ == end_ || *next_ != ':') fail(next_, "a colon must follow the feature index " + std::to_string(index) + " (index:value)");
  if (index == 0) fail(at, "the feature index is 0; LIBSVM indices start at 1");
  if (index == last_index_) fail(at, "the feature index " + std::to_string(index) + " comes twice");
  if (index < last_index_)
    fail(at, "the feature index " + std::to_string(index) + " follows " + std::to_string(last_index_) + "; indices must ascend");
  if (format_.num_features > 0 && index > format_.num_features)
    fail(at, "the feature index " + std::to_string(index) + " is beyond the " + std::to_string(format_.num_features) +
                 " features expected; set features = " + std::to_string(index) + " (or more) in [data]");
  ++next_;
  return static_cast<std::uint32_t>(index);
}

template <class T>
T LibsvmParser<T>::parse_value() {
  const char* at = next_;
  const double number = parse_number("value");
  if (next_ != end_ && !is_blank(*next_) && *next_ != '\n')
    fail(at, "a feature value must be one number followed by a blank, got \"" + printable({at, token_end()}) + "\"");
  const T value = static_cast<T>(number);
  if (!std::isfinite(value)) fail(at, "the value " + printable({at, next_}) + " does not fit into float32; use precision = \"float64\"");
  return value;
}

template <class T>
double LibsvmParser<T>::parse_number(const char* what) {
  const char* at = next_;
  const char* begin = at != end_ && *at == '+' ? at + 1 : at;
  const auto refuse = [&] { fail(at, std::string("a ") + what + " was expected, got \"" + token() + "\""); };
  if (begin != at && begin != end_ && *begin == '-') refuse();
  double value = 0;
  if (const char* stop = read_short_decimal(begin, end_, value)) {
    next_ = stop;
    return value;
  }
  const auto [stop, status] = std::from_chars(begin, end_, value);
  if (status == std::errc::result_out_of_range) fail(at, std::string("the ") + what + " " + token() + " is outside the range of float64");
  if (status != std::errc()) refuse();
  if (!std::isfinite(value)) fail(at, std::string("the ") + what + " is " + token() + "; only finite numbers can be used");
  next_ = stop;
  return value;
}

template <class T>
void LibsvmParser<T>::store(std::uint32_t column, T value) {
  if (format_.num_rows > 0 && num_rows_ > format_.num_rows) return;
  if (rows_.value.empty() && value != 1) rows_.value.assign(rows_.column.size(), T{1});
  const bool has_values = !rows_.value.empty() || value != 1;
  rows_.column.push_back(column);
  if (has_values) rows_.value.push_back(value);
}

template <class T>
void LibsvmParser<T>::skip_blanks() {
  while (next_ != end_ && is_blank(*next_)) ++next_;
}

template <class T>
bool LibsvmParser<T>::at_line_end() const {
  return next_ == end_ || *next_ == '\n' || *next_ == '#';
}

template <class T>
const char* LibsvmParser<T>::token_end() const {
  return std::find_if(next_, end_, [](char c) { return is_blank(c) || c == '\n'; });
}

template <class T>
std::string LibsvmParser<T>::token() const {
  return printable({next_, token_end()});
}

template <class T>
void LibsvmParser<T>::fail(const char* at, const std::string& message) const {
  throw DataError(file_name_ + ":" + std::to_string(line_) + ":" + std::to_string(at - line_begin_ + 1) + ": " + message);
}

template class LibsvmParser<float>;
template class LibsvmParser<double>;

}  // namespace fl
