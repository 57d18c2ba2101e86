// Values of options as objects of Python, and arrays as spans.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/options.hpp"

namespace fl::python {

namespace nb = nanobind;

// Returns an option as the core reads it. Throws, with the option's name, TypeError for an object of another type, and ValueError for a
// whole number beyond 64 bits, for text that has no bytes (a half of a surrogate pair), and for more than a million values, or 64 levels of
// them, as a list that contains itself.
[[nodiscard]] Value value_of(nb::handle object, const std::string& name);
[[nodiscard]] Value::Table table_of(const nb::dict& dictionary);
[[nodiscard]] nb::object object_of(const Value& value);

// Returns an object as errors show it: its repr, or the beginning of a long one.
[[nodiscard]] std::string shown(nb::handle object);

// Read an argument. Throw TypeError or ValueError with its name.
void read(nb::handle object, const std::string& name, std::string& to);
void read(nb::handle object, const std::string& name, std::vector<std::string>& to);
[[noreturn]] void refuse(nb::handle object, const std::string& name);  // for an object that is no such number
template <class T>
requires std::integral<T> || std::floating_point<T>
void read(nb::handle object, const std::string& name, T& to) {
  if (!nb::try_cast<T>(object, to)) refuse(object, name);
}

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<T> span_of(const Vector<T>& vector) {
  return {vector.data(), vector.shape(0)};
}
template <class T>
std::span<T> span_of(const std::optional<Vector<T>>& vector) {
  return vector ? span_of(*vector) : std::span<T>();
}

}  // namespace fl::python
