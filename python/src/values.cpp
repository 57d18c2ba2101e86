#include "python/src/values.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace fl::python {

namespace {

constexpr int kMostLevels = 64;         // of values in values, as of a scenario
constexpr std::size_t kMostShown = 80;  // bytes of a name or a value
constexpr int kMostValues = 1'000'000;  // of all options: a list that is in several lists counts each time

// Returns the beginning of a text, without a part of a character.
std::string beginning_of(const std::string& text) {
  if (text.size() <= kMostShown) return text;
  std::size_t end = kMostShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// Returns the text of an object that is one, or nothing if it has no bytes.
std::optional<std::string> bytes_of(nb::handle object) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (bytes != nullptr) return std::string(bytes, static_cast<std::size_t>(size));
  PyErr_Clear();
  return std::nullopt;
}

std::string text_of(nb::handle object, const std::string& name) {
  std::string text;
  read(object, name, text);
  return text;
}

// Where a value is: levels below an option, and the number of values before it.
struct Place {
  int level = 0;
  int* count = nullptr;

  [[nodiscard]] Place below() const { return {level + 1, count}; }
};

Value value_at(nb::handle object, const std::string& name, const Place& place);

Value::Table table_at(const nb::dict& dictionary, const std::string& name, const Place& place) {
  Value::Table table;
  for (const auto& [key, value] : dictionary) {
    std::string text = text_of(key, name.empty() ? "the name of an option" : "a key of " + name);
    const std::string path = name.empty() ? text : name + "." + text;
    table.emplace_back(std::move(text), value_at(value, path, place.below()));
  }
  return table;
}

Value value_at(nb::handle object, const std::string& name, const Place& place) {
  const auto refuse_more_than = [&name](int most, const char* what) {
    throw nb::value_error((beginning_of(name) + " has more than " + std::to_string(most) + what).c_str());
  };
  if (place.level > kMostLevels) refuse_more_than(kMostLevels, " levels of values in values, as a list that contains itself");
  if (++*place.count > kMostValues) refuse_more_than(kMostValues, " values, as a list that is in many lists");
  if (nb::isinstance<nb::bool_>(object)) return {nb::cast<bool>(object)};
  if (nb::isinstance<nb::int_>(object)) {
    std::int64_t number = 0;
    read(object, name, number);
    return {number};
  }
  if (nb::isinstance<nb::float_>(object)) return {nb::cast<double>(object)};
  if (nb::isinstance<nb::str>(object)) return {text_of(object, name)};
  if (nb::isinstance<nb::dict>(object)) return {table_at(nb::borrow<nb::dict>(object), name, place)};
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Value::List list;
    for (const nb::handle one : object) list.push_back(value_at(one, name + "[" + std::to_string(list.size()) + "]", place.below()));
    return {std::move(list)};
  }
  throw nb::type_error(
      (name + " is " + shown(object) + "; an option is a bool, an int, a float, a str, a list of these, or a compressor").c_str());
}

}  // namespace

std::string shown(nb::handle object) {
  std::string text;
  try {
    if (const std::optional<std::string> found = bytes_of(nb::repr(object))) text = *found;
  } catch (const nb::python_error&) {  // of a whole number with more than 4,300 digits, or of the object's own code
  }
  if (text.empty()) text = std::string("an object of type ") + nb::type_name(object.type()).c_str();
  return beginning_of(text);
}

void read(nb::handle object, const std::string& name, std::string& to) {
  if (!nb::isinstance<nb::str>(object)) throw nb::type_error((name + " has a value of the wrong type: " + shown(object)).c_str());
  std::optional<std::string> text = bytes_of(object);
  if (!text) throw nb::value_error((name + " is " + shown(object) + ", which has half of a surrogate pair and is no text").c_str());
  to = *std::move(text);
}

void read(nb::handle object, const std::string& name, std::vector<std::string>& to) {
  if (!nb::isinstance<nb::list>(object) && !nb::isinstance<nb::tuple>(object))
    throw nb::type_error((name + " has a value of the wrong type: " + shown(object)).c_str());
  to.clear();
  for (const nb::handle one : object) to.push_back(text_of(one, name + "[" + std::to_string(to.size()) + "]"));
}

void refuse(nb::handle object, const std::string& name) {
  if (nb::isinstance<nb::int_>(object)) throw nb::value_error((name + " is " + shown(object) + ", which is out of its range").c_str());
  throw nb::type_error((name + " has a value of the wrong type: " + shown(object)).c_str());
}

Value::Table table_of(const nb::dict& dictionary) {
  int count = 0;
  return table_at(dictionary, "", {.level = 0, .count = &count});
}

Value value_of(nb::handle object, const std::string& name) {
  int count = 0;
  return value_at(object, name, {.level = 0, .count = &count});
}

nb::object object_of(const Value& value) {
  struct Visitor {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(bool value) const { return nb::bool_(value); }
    nb::object operator()(std::int64_t value) const { return nb::int_(value); }
    nb::object operator()(double value) const { return nb::float_(value); }
    nb::object operator()(const std::string& value) const { return nb::str(value.c_str(), value.size()); }
    nb::object operator()(const Value::List& values) const {
      nb::list list;
      for (const Value& one : values) list.append(object_of(one));
      return list;
    }
    nb::object operator()(const Value::Table& table) const {
      nb::dict dictionary;
      for (const auto& [key, one] : table) dictionary[nb::str(key.c_str())] = object_of(one);
      return dictionary;
    }
  };
  return std::visit(Visitor{}, value.data);
}

}  // namespace fl::python
