#include "python/src/scenario.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "fl_core/state/checksum.hpp"
#include "python/src/calls.hpp"
#include "python/src/study_options.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/file/sweep.hpp"
#include "study/driver/simulation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fl::python {
namespace {

std::vector<Cell> read_cells(const nb::dict& options) {
  StudySettings arguments;
  take_study_options(options, arguments);
  const WithoutLock released;
  return cells_of(arguments, nullptr);
}

// Returns the runs of a scenario in their order: hash ("" if tuning decides it), seed, labels.
nb::list runs_of_scenario(const nb::dict& options) {
  nb::list runs;
  for (const Cell& cell : read_cells(options)) {
    nb::dict labels;
    for (const auto& [key, label] : cell.axis_labels) labels[nb::str(key.c_str())] = label;
    runs.append(nb::make_tuple(cell.needs_tuning() ? "" : to_hex(cell.hash), cell.scenario.seeds.data, labels));
  }
  return runs;
}

// Returns the first run of a scenario with all defaults, as a scenario file, and the paths of all keys that it has.
nb::tuple first_run_of(const nb::dict& options) {
  const std::vector<Cell> cells = read_cells(options);
  return nb::make_tuple(cells.front().resolved_toml, keys_of(cells.front().scenario));
}

}  // namespace

void bind_scenario(nb::module_& module) {
  module.def("runs_of_scenario", &runs_of_scenario, "options"_a);
  module.def("first_run_of", &first_run_of, "options"_a);
}

}  // namespace fl::python
