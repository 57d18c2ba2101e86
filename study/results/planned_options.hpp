// Combines the analysis plan that a store's runs keep with the options of a command: the plan is followed where the command line says
// nothing, and each option that departs from it is named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "study/results/contrast_arguments.hpp"

namespace fl {

struct AnalysisArguments {
  StudyOptions study{};  // its window is not read
  std::optional<double> window{};
  ContrastArguments contrasts{};
};

struct PlannedOptions {
  StudyOptions study{};
  ContrastOptions contrasts{};
  std::vector<std::string> notes{};       // for the reader: the plan, runs without it, departures
  std::vector<std::string> departures{};  // those of the notes that name an option that departs from the plan
};

// Reads the plan of the finished runs of a store. If they have several plans, none is followed, and a note says so. Adds problems of the
// options.
[[nodiscard]] FL_API PlannedOptions planned_options(const RunStore& store, const AnalysisArguments& arguments, Problems& problems);

}  // namespace fl
