// Parts of the registry that are written in Python: models, partitioners and data sets.
//
// fedbits/registration.py keeps the classes by role and kind and makes their objects; the registry has the description of their options.
// Python's lock is taken around each call and around the end of an object's life.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "clients/learning/gradient_failure.hpp"
#include "fl_core/config/options.hpp"
#include "python/src/values.hpp"

namespace fl::python {

// The options of a part, as its class declares them.
struct PythonOptions {
  struct Option {
    std::string name, doc;
    std::variant<bool, std::int64_t, double, std::string> value;
  };
  std::string role, kind;
  std::vector<Option> options;
};
void describe(Schema& schema, PythonOptions& options);

// An object of Python that C++ code owns.
class PythonObject {
 public:
  // Makes the object of a part. Throws PythonFailure for what its class raises.
  explicit PythonObject(const PythonOptions& options);
  ~PythonObject();
  PythonObject(const PythonObject&) = delete;
  PythonObject& operator=(const PythonObject&) = delete;

  // Returns object.name(arguments...). Python's lock is held.
  template <class... Arguments>
  nb::object call(const char* name, Arguments&&... arguments) const {
    return object_.attr(name)(std::forward<Arguments>(arguments)...);
  }
  [[nodiscard]] const nb::object& object() const { return object_; }

 private:
  nb::object object_;
};

// Reports what code of Python raised. The exception itself is kept for fedbits.run, which raises it unchanged.
class PythonFailure final : public GradientFailure {
 public:
  PythonFailure(nb::python_error& error, std::size_t position);
  void name(std::uint32_t client, const std::string& when) override;

 private:
  std::size_t number_ = 0;  // of the exception among those that fedbits.registration keeps
};

// Returns call() with Python's lock. What Python raises in it becomes a PythonFailure.
template <class Call>
auto with_python(const Call& call, std::size_t position = 0) {
  const nb::gil_scoped_acquire acquired;
  try {
    return call();
  } catch (nb::python_error& error) {
    throw PythonFailure(error, position);
  }
}

// Returns an array of NumPy that shares the memory of `data`, which outlives it.
template <class T, std::size_t N>
[[nodiscard]] nb::object array_of(T* data, const std::size_t (&shape)[N]) {
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<N>, nb::c_contig>(data, N, shape, nb::handle()), nb::rv_policy::reference);
}

// Returns an array of NumPy that owns its memory, and where to write its numbers.
template <class T, std::size_t N>
[[nodiscard]] std::pair<nb::object, T*> new_array(const std::size_t (&shape)[N]) {
  std::size_t size = 1;
  for (const std::size_t length : shape) size *= length;
  auto* data = new T[size];
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return {nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<N>, nb::c_contig>(data, N, shape, owner)), data};
}

}  // namespace fl::python
