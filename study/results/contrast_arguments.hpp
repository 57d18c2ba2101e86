// The options of contrasts (scenarios/analysis/contrasts.hpp) as text, as `report` and `export` take them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/contrasts.hpp"

namespace fl {

// The options as written; empty where they are not given.
struct ContrastArguments {
  std::vector<std::string> contrasts{}, between{}, margins{};
  std::string classes{}, heterogeneity{}, test{};
  std::optional<double> chance{};
};

// Reads the options. Adds unknown values and options without --contrast to `problems`.
[[nodiscard]] FL_API ContrastOptions contrast_options(const ContrastArguments& arguments, Problems& problems);

}  // namespace fl
