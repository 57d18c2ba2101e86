#include "fl_core/config/expression.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <vector>

#include "fl_core/config/options.hpp"
#include "fl_core/config/rule_field.hpp"

namespace fl {
namespace {

constexpr int kDeepestNesting = 100;        // of parentheses and signs, so that no text can exhaust the stack
constexpr std::size_t kLongestRule = 1000;  // characters

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Reads and evaluates at once, by recursive descent:
//   sum = product {(+|-) product}    product = signed {(*|/) signed}    signed = (+|-) signed | power
//   power = atom [^ signed]          atom = number | name | name ( sum {, sum} ) | ( sum )
// `lookup` gives the value of a name; positions in errors count from 1.
class Evaluator {
 public:
  using Lookup = std::function<double(const std::string&)>;
  Evaluator(const std::string& text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  double run() {
    const double value = sum();
    if (peek() != '\0') fail("expected an operator or the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError("\"" + text_ + "\": " + what + " at position " + std::to_string(at_ + 1));
  }

  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take('+'))
        value += product();
      else if (take('-'))
        value -= product();
      else
        return value;
    }
  }

  double product() {
    double value = with_sign();
    for (;;) {
      if (take('*'))
        value *= with_sign();
      else if (take('/'))
        value /= with_sign();
      else
        return value;
    }
  }

  double with_sign() {
    if (++depth_ > kDeepestNesting)
      fail("parentheses and signs are nested more than " + std::to_string(kDeepestNesting) + " levels deep, which is the limit");
    const double value = take('-') ? -with_sign() : take('+') ? with_sign() : power();
    --depth_;
    return value;
  }

  double power() {
    const double base = atom();
    return take('^') ? std::pow(base, with_sign()) : base;
  }

  double atom() {
    const char c = peek();
    if (take('(')) {
      const double value = sum();
      if (!take(')')) fail("expected \")\"");
      return value;
    }
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c)) return name_or_call();
    fail("expected a number, a name or \"(\"");
  }

  double number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) fail("expected a number");
    if (error == std::errc::result_out_of_range) fail("a number out of range");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && is_letter(text_[at_])) fail("expected an operator");
    return value;
  }

  double name_or_call() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string name = text_.substr(begin, at_ - begin);
    if (peek() != '(') return lookup_(name);
    static const std::vector<std::string> kFunctions = {"sqrt", "min", "max"};
    if (std::find(kFunctions.begin(), kFunctions.end(), name) == kFunctions.end()) {
      at_ = begin;
      const std::string near = nearest_name(name, kFunctions);
      fail("unknown function \"" + name + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?") + " (known: sqrt, min, max)");
    }
    take('(');
    std::vector<double> values = {sum()};
    while (take(',')) values.push_back(sum());
    if (name == "sqrt" && values.size() > 1) fail("sqrt takes one value");
    if (!take(')')) fail("expected \")\"");
    return call(name, values);
  }

  static double call(const std::string& function, const std::vector<double>& values) {
    if (function == "sqrt") return std::sqrt(values[0]);
    double result = values[0];
    for (const double v : values) {
      if (std::isnan(v)) return v;
      result = function == "min" ? std::min(result, v) : std::max(result, v);
    }
    return result;
  }

  const std::string& text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expression::Expression(double number) : text_(to_string(Value{number})), number_(number) {}

// A rule without names is a number at once: "1/4" is 0.25. Spaces carry no meaning and are dropped.
Expression::Expression(const std::string& text) {
  if (text.size() > kLongestRule)
    throw ConfigError("a rule has at most " + std::to_string(kLongestRule) + " characters, this one has " + std::to_string(text.size()));
  bool has_names = false;
  const double value = Evaluator(text, [&has_names](const std::string&) {
                         has_names = true;
                         return 1.0;
                       }).run();
  text_ = text;
  if (has_names) {
    text_.erase(std::remove_if(text_.begin(), text_.end(), is_space), text_.end());
    return;
  }
  if (!std::isfinite(value)) throw ConfigError("\"" + text + "\": must be finite, is " + to_string(Value{value}));
  number_ = value;
  text_ = to_string(Value{value});
}

double Expression::resolve(const std::map<std::string, double>& names) const {
  if (number_) return *number_;
  const double value =
      Evaluator(text_, [&](const std::string& name) {
        if (const auto found = names.find(name); found != names.end()) return found->second;
        std::vector<std::string> known;
        std::string all;
        for (const auto& [n, _] : names) {
          known.push_back(n);
          all += (all.empty() ? "" : ", ") + n;
        }
        const std::string near = nearest_name(name, known);
        throw ConfigError("\"" + text_ + "\": unknown name \"" + name + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?") +
                          " (known here: " + (all.empty() ? "none" : all) + ")");
      }).run();
  if (std::isfinite(value)) return value;
  std::string given;
  for (const auto& [n, v] : names)
    if (text_.find(n) != std::string::npos) given += (given.empty() ? " with " : ", ") + n + " = " + to_string(Value{v});
  throw ConfigError("\"" + text_ + "\": must be finite, is " + to_string(Value{value}) + given);
}

std::vector<std::string> names_of(const Expression& rule) {
  std::vector<std::string> names;
  if (rule.is_number()) return names;
  (void)Evaluator(rule.text(), [&names](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    return 1.0;
  }).run();
  return names;
}

}  // namespace fl
