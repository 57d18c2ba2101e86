#include "python/src/values.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace fl::python {

Value::Table table_of(const nb::dict& dictionary) {
  Value::Table table;
  for (const auto& [key, value] : dictionary) table.emplace_back(nb::cast<std::string>(key), value_of(value));
  return table;
}

Value value_of(nb::handle object) {
  if (nb::isinstance<nb::bool_>(object)) return {nb::cast<bool>(object)};
  if (nb::isinstance<nb::int_>(object)) return {nb::cast<std::int64_t>(object)};
  if (nb::isinstance<nb::float_>(object)) return {nb::cast<double>(object)};
  if (nb::isinstance<nb::str>(object)) return {nb::cast<std::string>(object)};
  if (nb::isinstance<nb::dict>(object)) return {table_of(nb::cast<nb::dict>(object))};
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Value::List list;
    for (const nb::handle one : object) list.push_back(value_of(one));
    return {std::move(list)};
  }
  throw nb::type_error("an option is a bool, an int, a float, a str, a list of these, or a compressor");
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
