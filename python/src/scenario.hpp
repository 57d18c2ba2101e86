// Scenarios for Python: their keys, their values and their runs. fedbits/scenario.py makes a class of them.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::python {

// Adds functions that read the text of a scenario and its settings.
void bind_scenario(nanobind::module_& module);

}  // namespace fl::python
