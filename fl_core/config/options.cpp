#include "fl_core/config/options.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace fl {
namespace {

// Shortest digits that read back as the same double; TOML wants a dot or an exponent in a float.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  static const char* const kHex = "0123456789ABCDEF";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      result += std::string("\\u00") + kHex[byte / 16] + kHex[byte % 16];
    else
      result += c;
  }
  return result + "\"";
}

// A number for people: "-1" and "0.5", not "-1.0".
std::string plain_number(double value) {
  std::string text = number_text(value);
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return text;
}

std::string plain(const Value& value) {
  const auto* number = std::get_if<double>(&value.data);
  return number != nullptr ? plain_number(*number) : to_string(value);
}

std::optional<double> as_number(const Value& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value.data)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value.data)) return *d;
  return std::nullopt;
}

std::string refuse(const std::string& wanted, const Value& value) { return "must be " + wanted + ", is " + to_string(value); }

// ---- one conversion per type; a text says why not ----

std::optional<std::string> convert(const Value& value, bool& out) {
  const auto* b = std::get_if<bool>(&value.data);
  if (b == nullptr) return refuse("true or false", value);
  out = *b;
  return std::nullopt;
}

std::optional<std::string> convert(const Value& value, std::int64_t& out) {
  if (const auto* i = std::get_if<std::int64_t>(&value.data)) {
    out = *i;
    return std::nullopt;
  }
  const auto* d = std::get_if<double>(&value.data);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const bool is_whole = d != nullptr && std::fabs(*d) < kExact && *d == std::floor(*d);
  return refuse("an integer", value) + (is_whole ? "; write " + std::to_string(static_cast<std::int64_t>(*d)) : "");
}

std::optional<std::string> convert(const Value& value, double& out) {
  const auto number = as_number(value);
  if (!number) return refuse("a number", value);
  if (!std::isfinite(*number)) return refuse("finite", value);
  out = *number;
  return std::nullopt;
}

std::optional<std::string> convert(const Value& value, std::string& out) {
  const auto* s = std::get_if<std::string>(&value.data);
  if (s == nullptr) return refuse("a string", value);
  out = *s;
  return std::nullopt;
}

std::optional<std::string> convert(const Value& value, Expression& out) {
  if (const auto* s = std::get_if<std::string>(&value.data)) {
    try {
      out = Expression(*s);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return std::nullopt;
  }
  double number = 0;
  if (!as_number(value)) return refuse("a number or a rule such as \"1/L\"", value);
  if (auto why = convert(value, number)) return why;
  out = Expression(number);
  return std::nullopt;
}

template <class T>
std::optional<std::string> convert(const Value& value, std::vector<T>& out) {
  const auto* list = std::get_if<Value::List>(&value.data);
  if (list == nullptr) return refuse("a list", value);
  std::vector<T> result(list->size());
  for (std::size_t i = 0; i < list->size(); ++i)
    if (auto why = convert((*list)[i], result[i])) return "element " + std::to_string(i + 1) + " " + *why;
  out = std::move(result);
  return std::nullopt;
}

// ---- and back ----

template <class T>
Value to_value(const T& x) {
  return Value{x};
}
Value to_value(const Expression& x) {
  if (x.is_number()) return Value{x.resolve({})};
  return Value{x.text()};
}
template <class T>
Value to_value(const std::vector<T>& xs) {
  Value::List list(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) list[i].data = xs[i];
  Value value;
  value.data = std::move(list);
  return value;
}

template <class T>
Field field_of(std::string name, std::string type, T& value, std::string doc) {
  return Field(
      std::move(name), std::move(type), std::move(doc), [&value](const Value& v) { return convert(v, value); },
      [&value] { return to_value(value); });
}

}  // namespace

std::string to_string(const Value& value) {
  struct Writer {
    std::string operator()(std::monostate) const { return "nothing"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const { return number_text(d); }
    std::string operator()(const std::string& s) const { return quoted(s); }
    std::string operator()(const Value::List& list) const {
      std::string text = "[";
      for (std::size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ", ") + to_string(list[i]);
      return text + "]";
    }
    std::string operator()(const Value::Table& table) const {
      std::string text = "{ ";
      for (std::size_t i = 0; i < table.size(); ++i) text += (i == 0 ? "" : ", ") + table[i].first + " = " + to_string(table[i].second);
      return text + " }";
    }
  };
  return std::visit(Writer{}, value.data);
}

Field::Field(std::string name_, std::string type_, std::string doc_, Setter set, Getter get)
    : name(std::move(name_)), type(std::move(type_)), doc(std::move(doc_)), set_(std::move(set)), get_(std::move(get)) {}

Field& Field::at_least(double bound) {
  at_least_ = bound;
  return *this;
}
Field& Field::above(double bound) {
  above_ = bound;
  return *this;
}
Field& Field::at_most(double bound) {
  at_most_ = bound;
  return *this;
}
Field& Field::below(double bound) {
  below_ = bound;
  return *this;
}
Field& Field::required() {
  is_required = true;
  return *this;
}
Field& Field::added_later(Value default_value) {
  unwritten = std::move(default_value);
  return *this;
}
bool Field::is_written() const { return !unwritten || to_string(value()) != to_string(*unwritten); }
Field& Field::unit(std::string unit) {
  unit_text = std::move(unit);
  return *this;
}

std::string Field::constraint() const {
  std::string text;
  const auto add = [&text](const char* relation, const std::optional<double>& bound) {
    if (bound) text += (text.empty() ? "" : ", ") + std::string(relation) + " " + plain_number(*bound);
  };
  add(">=", at_least_);
  add(">", above_);
  add("<=", at_most_);
  add("<", below_);
  return text;
}

// Bounds apply to a number, to each number of a list, and to a rule that is a number.
std::optional<std::string> Field::assign(const Value& value) {
  if (const auto* list = std::get_if<Value::List>(&value.data)) {
    for (std::size_t i = 0; i < list->size(); ++i)
      if (auto why = check_bounds((*list)[i])) return "element " + std::to_string(i + 1) + " " + *why;
  } else if (auto why = check_bounds(value)) {
    return why;
  }
  const Value before = get_();
  if (auto why = set_(value)) return why;
  auto why = check_bounds(get_());
  if (why) static_cast<void>(set_(before));
  return why;
}

std::optional<std::string> Field::check_bounds(const Value& value) const {
  const auto number = as_number(value);
  if (!number || std::isnan(*number)) return std::nullopt;
  const bool within = !(at_least_ && *number < *at_least_) && !(above_ && *number <= *above_) && !(at_most_ && *number > *at_most_) &&
                      !(below_ && *number >= *below_);
  if (within) return std::nullopt;
  return "must be " + constraint() + ", is " + plain(value);
}

Field& Schema::field(std::string name, bool& value, std::string doc) {
  return add(field_of(std::move(name), "true or false", value, std::move(doc)));
}
Field& Schema::field(std::string name, std::int64_t& value, std::string doc) {
  return add(field_of(std::move(name), "integer", value, std::move(doc)));
}
Field& Schema::field(std::string name, double& value, std::string doc) {
  return add(field_of(std::move(name), "number", value, std::move(doc)));
}
Field& Schema::field(std::string name, std::string& value, std::string doc) {
  return add(field_of(std::move(name), "string", value, std::move(doc)));
}
Field& Schema::field(std::string name, Expression& value, std::string doc) {
  return add(field_of(std::move(name), "number or rule", value, std::move(doc)));
}
Field& Schema::field(std::string name, std::vector<double>& value, std::string doc) {
  return add(field_of(std::move(name), "list of numbers", value, std::move(doc)));
}
Field& Schema::field(std::string name, std::vector<std::int64_t>& value, std::string doc) {
  return add(field_of(std::move(name), "list of integers", value, std::move(doc)));
}
Field& Schema::field(std::string name, std::vector<std::string>& value, std::string doc) {
  return add(field_of(std::move(name), "list of strings", value, std::move(doc)));
}

Field& Schema::add(Field field) {
  if (find(field.name) != nullptr) throw Error("an options struct names the field \"" + field.name + "\" twice");
  fields_.push_back(std::move(field));
  return fields_.back();
}

Field* Schema::find(const std::string& name) {
  for (Field& field : fields_)
    if (field.name == name) return &field;
  return nullptr;
}

Schema Options::schema() {
  Schema schema;
  if (self_) self_->describe_to(schema);
  return schema;
}

void Options::validate(Problems& problems) const {
  if (self_) self_->validate_to(problems);
}

}  // namespace fl
