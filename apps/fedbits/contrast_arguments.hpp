// Options of `report` and `export` that name contrasts of methods (scenarios/analysis/contrasts.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/analysis/contrasts.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// The options as written; empty where they are not given.
struct ContrastArguments {
  std::vector<std::string> contrasts{}, between{}, margins{};
  std::string classes{}, heterogeneity{}, test{};
  std::optional<double> chance{};
};

void add_contrast_options(CLI::App& command, ContrastArguments& arguments);

// Reads the options. Adds unknown values and options without --contrast to `problems`.
[[nodiscard]] ContrastOptions contrast_options(const ContrastArguments& arguments, Problems& problems);

}  // namespace fl
