// --plugin FILE.so, the same for every command that reads the registry.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// Adds the option; the command calls load_plugins(files) before anything else.
void add_plugin_option(CLI::App& command, std::vector<std::string>& files);

}  // namespace fl
