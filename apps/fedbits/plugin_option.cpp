#include "apps/fedbits/plugin_option.hpp"

#include <CLI/CLI.hpp>

namespace fl {

void add_plugin_option(CLI::App& command, std::vector<std::string>& files) {
  command.add_option("--plugin", files, "shared object with parts of your own (repeatable)")->allow_extra_args(false);
}

}  // namespace fl
