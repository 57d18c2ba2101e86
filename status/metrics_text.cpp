#include "status/metrics_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "fl_core/config/error.hpp"

namespace fl::net {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_metric_name(std::string_view name) {
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Escapes a backslash and a line feed, and inside a label's value also a double quote.
std::string escaped(std::string_view text, bool is_label) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\')
      safe += "\\\\";
    else if (c == '\n')
      safe += "\\n";
    else if (c == '"' && is_label)
      safe += "\\\"";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

std::string MetricsText::plain(std::string_view text) {
  std::string safe(text);
  for (char& c : safe)
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e)) c = '?';
  return safe;
}

void MetricsText::family(std::string_view name, Type type, std::string_view help) {
  if (!is_metric_name(name)) throw Error("'" + std::string(name) + "' is not the name of a metric");
  family_ = name;
  const std::string head = "# HELP " + family_ + " ";
  if (text_.find(head) != std::string::npos) throw Error("the metric " + family_ + " is written twice");
  text_ += head + escaped(plain(help), false) + "\n# TYPE " + family_ + (type == Type::counter ? " counter\n" : " gauge\n");
}

void MetricsText::sample(double value, Labels labels) {
  if (std::isnan(value)) return write("NaN", labels);
  if (std::isinf(value)) return write(value > 0 ? "+Inf" : "-Inf", labels);
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  write({digits.data(), end}, labels);
}

void MetricsText::sample(std::uint64_t value, Labels labels) { write(std::to_string(value), labels); }

void MetricsText::write(const std::string& value, Labels labels) {
  if (family_.empty()) throw Error("a sample needs a family");
  text_ += family_;
  bool is_first = true;
  for (const auto& [name, content] : labels) {
    if (!is_metric_name(name)) throw Error("'" + std::string(name) + "' is not the name of a label");
    text_ += (is_first ? "{" : ",") + std::string(name) + "=\"" + escaped(plain(content), true) + "\"";
    is_first = false;
  }
  text_ += (is_first ? " " : "} ") + value + "\n";
}

}  // namespace fl::net
