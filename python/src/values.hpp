// Values of options as objects of Python, and arrays as spans.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <span>

#include "fl_core/config/options.hpp"

namespace fl::python {

namespace nb = nanobind;

// Returns an option as the core reads it. Throws TypeError for an object of another type.
[[nodiscard]] Value value_of(nb::handle object);
[[nodiscard]] Value::Table table_of(const nb::dict& dictionary);
[[nodiscard]] nb::object object_of(const Value& value);

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
