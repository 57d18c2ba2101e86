#include "study/results/contrast_arguments.hpp"

#include "scenarios/analysis/slope_differences.hpp"

namespace fl {
namespace {

void read_classes(const std::string& text, ContrastOptions& options, Problems& problems) {
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    problems.push_back({"--classes", "'" + text + "' must be two names as A:B, such as absolute:contraction"});
    return;
  }
  options.classes = {text.substr(0, colon), text.substr(colon + 1)};
}

void read_heterogeneity(const std::string& text, ContrastOptions& options, Problems& problems) {
  if (text.empty()) return;
  for (const Heterogeneity axis : {Heterogeneity::at_start, Heterogeneity::at_optimum, Heterogeneity::order})
    if (text == to_string(axis)) options.heterogeneity = axis;
  if (!options.heterogeneity) problems.push_back({"--heterogeneity", "'" + text + "' must be start, optimum or order"});
}

}  // namespace

ContrastOptions contrast_options(const ContrastArguments& arguments, Problems& problems) {
  ContrastOptions options{.contrasts = arguments.contrasts, .between = arguments.between, .chance = arguments.chance};
  for (const std::string& text : arguments.between)
    if (label_pairs(text).empty()) problems.push_back({"--between", "'" + text + "' must be an axis with two of its labels as KEY=A:B"});
  read_classes(arguments.classes, options, problems);
  read_heterogeneity(arguments.heterogeneity, options, problems);
  for (const std::string& text : arguments.margins) {
    const std::optional<Margin> margin = read_margin(text);
    if (margin) options.margins.push_back(*margin);
    if (!margin) problems.push_back({"--margin", "'" + text + "' must be a ratio above 1, such as 1.1x, or points, such as 1pt"});
  }
  if (arguments.chance && !(*arguments.chance >= 0 && *arguments.chance <= 1)) problems.push_back({"--chance", "must be between 0 and 1"});
  if (!arguments.test.empty() && arguments.test != "t" && arguments.test != "sign-flip")
    problems.push_back({"--slope-test", "'" + arguments.test + "' must be t or sign-flip"});
  if (arguments.test == "sign-flip") options.test = SlopeTest::sign_flip;
  return options;
}

}  // namespace fl
