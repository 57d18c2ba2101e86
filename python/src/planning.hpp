// Commands that run no study, for Python: plan, suggest and check.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::python {

void bind_planning(nanobind::module_& module);

}  // namespace fl::python
