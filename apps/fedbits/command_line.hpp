// Describes the command line as data, for the manual page and for completion in a shell.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

struct Flag {
  std::vector<std::string> names;  // "--out", "-q"
  std::string value, text;         // value: name of the option's value, "" for a flag
};
struct Positional {
  std::string name, text;
};
struct Command {
  std::string name, text, footer;
  std::vector<Flag> flags;
  std::vector<Positional> positionals;
};

// Returns a command with its options and arguments, without the hidden ones.
[[nodiscard]] Command describe_command(const CLI::App& app);

// Returns the commands of the program. Hidden commands, those without a group, are for scripts and are left out.
[[nodiscard]] std::vector<Command> commands_of(const CLI::App& app);

}  // namespace fl
