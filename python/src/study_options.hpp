// The options of a study, from a dict of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "python/src/values.hpp"
#include "study/driver/study_settings.hpp"

namespace fl::python {

// Sets a field if the dict has the option. Throws TypeError or ValueError with the option's name.
template <class T>
void take(const nanobind::dict& options, const char* name, T& field) {
  if (options.contains(name)) read(options[name], name, field);
}
template <class T>
void take(const nanobind::dict& options, const char* name, std::optional<T>& field) {
  if (options.contains(name)) read(options[name], name, field.emplace());
}

// Sets the options that all commands with a scenario have. The scenario is `file`, or `text` with a `name` and the `folder` of its relative
// paths.
void take_study_options(const nanobind::dict& options, StudySettings& settings);

}  // namespace fl::python
