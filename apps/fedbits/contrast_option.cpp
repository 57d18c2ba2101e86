#include "apps/fedbits/contrast_option.hpp"

#include <CLI/CLI.hpp>

namespace fl {

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

}  // namespace fl
