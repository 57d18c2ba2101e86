// Adds --plugin FILE.so to every command that reads the registry.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// Adds the option. The command must call load_plugins(files) first.
void add_plugin_option(CLI::App& command, std::vector<std::string>& files);

}  // namespace fl
