// The options of a study, from a dict of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "apps/fedbits/run_support.hpp"

namespace fl::python {

// Sets a field if the dict has the option. Throws TypeError, with the option's name, for a value of another type.
template <class T>
void take(const nanobind::dict& options, const char* name, T& field) {
  if (!options.contains(name)) return;
  if (!nanobind::try_cast<T>(options[name], field))
    throw nanobind::type_error((std::string(name) + " has a value of the wrong type: " + nanobind::repr(options[name]).c_str()).c_str());
}

// Sets the options that all commands with a scenario have. The scenario is `file`, or `text` with a `name` and the `folder` of its relative
// paths.
void take_study_options(const nanobind::dict& options, StudyArguments& arguments);

}  // namespace fl::python
