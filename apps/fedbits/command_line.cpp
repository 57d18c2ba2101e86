#include "apps/fedbits/command_line.hpp"

#include <CLI/CLI.hpp>
#include <utility>

namespace fl {
namespace {

// Returns "INT" for "INT:INT in [1 - 4096]".
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

}  // namespace

Command describe_command(const CLI::App& app) {
  Command command{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (option->get_positional()) {
      command.positionals.push_back({option->get_name(true), option->get_description()});
      continue;
    }
    Flag flag{{}, option->get_items_expected_max() == 0 ? "" : type_of(*option), option->get_description()};
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    command.flags.push_back(std::move(flag));
  }
  return command;
}

// Returns the visible commands. Hidden commands, those without a group, are for scripts.
std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* sub : app.get_subcommands({}))
    if (!sub->get_group().empty()) commands.push_back(describe_command(*sub));
  return commands;
}

}  // namespace fl
