// The simulator for Python: studies of scenario files. fedbits/simulator.py makes functions for users of it.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::python {

// Adds run_study, sweep_study and the errors of studies.
void bind_simulator(nanobind::module_& module);

}  // namespace fl::python
