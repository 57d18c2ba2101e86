// Stores of results for Python. fedbits/store.py makes tables of pandas from them.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::python {

// Adds functions that read a store: its tables, its comparisons and its report.
void bind_store(nanobind::module_& module);

}  // namespace fl::python
