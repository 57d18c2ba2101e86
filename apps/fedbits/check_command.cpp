// `fedbits check`: runs the checks of built-in parts on any part, in particular on parts from plug-ins.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "checks/check.hpp"
#include "scenarios/plugins/part_settings.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "study/planning/checked_parts.hpp"

namespace fl {

namespace {

// Runs a check. Prints one line if the check passes, otherwise its findings.
bool run_check(const PartName& part, const checks::Check& check) {
  std::cout << "  " << check.name << std::flush;  // printed first, so that the output of a part that crashes shows where
  checks::Findings findings;
  checks::FindingPlace(findings, part.name).guard([&] { check.run(part.name, findings); });
  std::cout << (findings.empty() ? ": ok, " : ": FAILED, ") << check.promise << '\n';
  for (const std::string& text : findings.texts()) std::cout << "      " << text << '\n';
  if (findings.count() > findings.texts().size()) std::cout << "      and " << findings.count() - findings.texts().size() << " more\n";
  return findings.empty();
}

int check(const CheckArguments& arguments) {
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const std::vector<PartName> parts = parts_to_check(arguments, plugins);
  require_known_checks(arguments.only, parts);
  set_defaults(parts, arguments.settings);
  int num_run = 0, num_failed = 0;
  for (const PartName& part : parts) {
    const std::vector<checks::Check> checks = checks::checks_of(part.role);
    std::cout << part.role << ' ' << part.name << (checks.empty() ? ": there are no checks for this role\n" : "\n");
    for (const checks::Check& check : checks) {
      if (!arguments.only.empty() && std::ranges::find(arguments.only, check.name) == arguments.only.end()) continue;
      ++num_run;
      num_failed += run_check(part, check) ? 0 : 1;
    }
  }
  if (num_run > 0) std::cout << num_run << " checks, " << num_failed << " failed\n";
  if (num_failed > 0) return 1;
  require_checks(parts);
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand("check", "test parts against the requirements of their role; meant for parts of your own");
  command->add_option("PART", arguments->names, "names of parts (default: all parts of the plug-ins)");
  command->add_option("--set", arguments->settings, "change an option of these parts: --set ratio=0.1 (repeatable)")
      ->allow_extra_args(false);
  add_plugin_option(*command, arguments->plugins);
  command->add_option("--only", arguments->only, "run only these checks (repeatable)")->allow_extra_args(false);
  command->footer(
      "Examples:\n  fedbits check --plugin ./nearest_level.so\n  fedbits check top_k --set k=3 --only bits\nExit code: 0 all is well, 1 a "
      "check failed, 2 bad input, or a part whose role has no checks");
  command->callback([arguments, guard] { guard([&] { return check(*arguments); }); });
}

}  // namespace fl
