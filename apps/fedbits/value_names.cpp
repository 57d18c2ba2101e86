#include "apps/fedbits/value_names.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace fl {

namespace {

// The values that options take, by option, or by command and option.
constexpr std::pair<std::string_view, const char*> kNames[] = {
    {"set", "KEY=VALUE"},
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
    {"join shard", "FILE"},
    {"data out", "FILE"},
    {"out", "FOLDER"},
    {"json", "FILE"},
    {"log-json", "FILE"},
    {"log", "FORM"},
    {"status", "ADDRESS"},
    {"rounds", "FILE"},
    {"runs", "FILE"},
    {"latex", "FILE"},
    {"scenario", "FILE"},
    {"output", "FILE"},
    {"only", "CHECK"},
    {"measure", "COLUMN"},
    {"baseline", "LABEL"},
    {"study", "NAME"},
    {"method", "AXIS"},
    {"level", "AXIS"},
    {"target", "NUMBER"},
    {"window", "SHARE"},
    {"contrast", "A:B"},
    {"between", "KEY=A:B"},
    {"classes", "A:B"},
    {"heterogeneity", "AXIS"},
    {"margin", "MARGIN"},
    {"chance", "SHARE"},
    {"slope-test", "TEST"},
    {"differences", "FILE"},
    {"slopes", "FILE"},
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
    {"ready-limit", "SECONDS"},
    {"also-read", "PATH"},
    {"over-select", "FACTOR"},
    {"emulate", "CONDITIONS"},
    {"certs", "FOLDER"},
    {"identity", "NAME"},
    {"clients", "IDS"},
    {"certs clients", "N"},
    {"per-peer", "N"},
    {"days", "N"},
    {"server", "NAME"},
};

const char* name_of(std::string_view option) {
  const auto* const found = std::find_if(std::begin(kNames), std::end(kNames), [option](const auto& one) { return one.first == option; });
  return found == std::end(kNames) ? nullptr : found->second;
}

// Sets the value name of a command's option. A positional is already named in the usage. Text of a validator is removed, because its error
// states it.
void name_value(const std::string& command, CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return;
  if (option.get_positional()) {
    option.type_name("");
  } else if (!option.get_lnames().empty()) {
    const std::string& option_name = option.get_lnames().front();
    const char* name = name_of(command + " " + option_name);
    if (name == nullptr) name = name_of(option_name);
    if (name == nullptr) return;
    option.type_name(name);
    if (option.get_type_name() != name) option.get_validator("")->description("");
  }
}

}  // namespace

void name_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    for (CLI::Option* option : command->get_options()) name_value(command->get_name(), *option);
}

}  // namespace fl
