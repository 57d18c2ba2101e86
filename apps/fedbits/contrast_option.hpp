// Options of `report` and `export` that name contrasts of methods (scenarios/analysis/contrasts.hpp).
#pragma once

#include "study/results/contrast_arguments.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

void add_contrast_options(CLI::App& command, ContrastArguments& arguments);

}  // namespace fl
