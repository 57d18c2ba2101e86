#include "apps/fedbits/contrast_arguments.hpp"

#include <CLI/CLI.hpp>

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

void add_contrast_options(CLI::App& command, ContrastArguments& arguments) {
  command
      .add_option("--contrast", arguments.contrasts,
                  "two methods: how their difference changes with heterogeneity (repeatable; all contrasts are one family)")
      ->allow_extra_args(false);
  command
      .add_option("--between", arguments.between,
                  "an axis and two of its labels: whether the contrasts' slopes differ between them (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--classes", arguments.classes, "names of the classes of the first and the second method of each contrast");
  command.add_option("--heterogeneity", arguments.heterogeneity,
                     "axis of the contrasts' slopes: log zeta^2 at the start or the optimum, or the order of the levels "
                     "(default: optimum, start, order, whichever all runs have)");
  command
      .add_option("--margin", arguments.margins,
                  "margin of non-inferiority at the strongest level: 1.1x for a ratio of gaps, 1pt for a share (repeatable)")
      ->allow_extra_args(false);
  command.add_option(
      "--chance", arguments.chance,
      "share that a diverged run counts as in contrasts (default: 1 / classes for an accuracy, else that of its initial model)");
  command.add_option("--slope-test", arguments.test, "test that decides about a contrast: t or sign-flip (default: t; both are shown)");
}

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
