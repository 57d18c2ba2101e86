#include "apps/fedbits/value_names.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace fl {

namespace {

const std::map<std::string, std::string>& names() {
  static const std::map<std::string, std::string> table = {{"set", "KEY=VALUE"},
                                                           {"plugin", "FILE.so"},
                                                           {"data", "FOLDER"},
                                                           {"device", "NAME"},
                                                           {"checkpoint-rounds", "N"},
                                                           {"checkpoint-minutes", "MINUTES"},
                                                           {"jobs", "N"},
                                                           {"threads", "N"},
                                                           {"block", "N"},
                                                           {"try", "N"},
                                                           {"seconds", "SECONDS"},
                                                           {"memory", "SIZE"},
                                                           {"shard", "I/N"},
                                                           {"out", "FOLDER"},
                                                           {"json", "FILE"},
                                                           {"log-json", "FILE"},
                                                           {"log", "FORM"},
                                                           {"status", "ADDRESS"},
                                                           {"rounds", "FILE"},
                                                           {"runs", "FILE"},
                                                           {"output", "FILE"},
                                                           {"only", "CHECK"},
                                                           {"measure", "COLUMN"},
                                                           {"baseline", "LABEL"},
                                                           {"study", "NAME"},
                                                           {"method", "AXIS"},
                                                           {"level", "AXIS"},
                                                           {"target", "NUMBER"},
                                                           {"window", "SHARE"},
                                                           {"split-csv", "FILE"},
                                                           {"from", "URL"},
                                                           {"state", "FOLDER"},
                                                           {"state-memory", "SIZE"},
                                                           {"state-folder", "FOLDER"},
                                                           {"save-model", "FOLDER"},
                                                           {"model-format", "FORMAT"},
                                                           {"save-samples", "FOLDER"},
                                                           {"split-file", "FILE"},
                                                           {"server-data", "FILE"},
                                                           {"listen", "HOST:PORT"},
                                                           {"min-clients", "N"},
                                                           {"deadline", "SECONDS"},
                                                           {"patience", "SECONDS"},
                                                           {"over-select", "FACTOR"},
                                                           {"emulate", "CONDITIONS"},
                                                           {"certs", "FOLDER"},
                                                           {"identity", "NAME"},
                                                           {"clients", "IDS"},
                                                           {"certs clients", "N"},
                                                           {"per-peer", "N"},
                                                           {"days", "N"},
                                                           {"server", "NAME"}};
  return table;
}

// Sets the value name of a command's option. A positional is already named in the usage. Text of a validator is removed, because its error
// states it.
void name_value(const std::string& command, CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return;
  if (option.get_positional()) {
    option.type_name("");
  } else if (!option.get_lnames().empty()) {
    auto name = names().find(command + " " + option.get_lnames().front());
    if (name == names().end()) name = names().find(option.get_lnames().front());
    if (name == names().end()) return;
    option.type_name(name->second);
    if (option.get_type_name() != name->second) option.get_validator("")->description("");
  }
}

}  // namespace

void name_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    for (CLI::Option* option : command->get_options()) name_value(command->get_name(), *option);
}

}  // namespace fl
