#include "scenarios/plugins/plugins.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "fl_core/config/plugin_stamp.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/regular_file.hpp"
#include "scenarios/data/sha256.hpp"
#include "scenarios/plugins/plugin_probe.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

// In two halves, as in the stamp's header: this library is no plug-in.
const std::string kStampOpening = std::string("fedbits-plug") + "-in{";

std::string read_bytes(const fs::path& file) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;  // bytes
  std::error_code error;
  if (!fs::exists(file, error)) throw ConfigError("no such file");
  try {
    return read_regular_file(file, {.bytes = kMost, .advice = "this cannot be a plug-in"});
  } catch (const FileError& why) {
    throw ConfigError("it " + why.reason());
  }
}

// The text of the stamp. Throws ConfigError for a file that is no plug-in.
std::string stamp_of(std::string_view bytes) {
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    throw ConfigError("not a shared object");
  const std::size_t begin = bytes.find(kStampOpening);
  const std::size_t end = begin == std::string_view::npos ? begin : bytes.find('}', begin);
  constexpr std::size_t kMost = 512;  // bytes of a stamp
  if (end == std::string_view::npos || end - begin > kMost) throw ConfigError("not a plug-in of fedbits: build it with fedbits_add_plugin");
  return std::string(bytes.substr(begin + kStampOpening.size(), end - begin - kStampOpening.size()));
}

// "version|interface|ABI" as {version, interface, ABI}.
std::vector<std::string> fields_of(std::string_view stamp) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= stamp.size();) {
    const std::size_t end = std::min(stamp.find('|', begin), stamp.size());
    fields.emplace_back(stamp.substr(begin, end - begin));
    begin = end + 1;
  }
  fields.resize(3);
  return fields;
}

// Throws ConfigError for another interface or another ABI. The versions of fedbits may differ if the interface is the same.
void check_stamp(std::string_view stamp) {
  const std::vector<std::string> theirs = fields_of(stamp), ours = fields_of(kStampText);
  if (theirs[1] != ours[1])
    throw ConfigError("built for version " + plain_text(theirs[1]) + " of the plug-in interface (fedbits " + plain_text(theirs[0]) +
                      "), but this is version " + ours[1] + " (fedbits " + ours[0] + "); build it again");
  if (theirs[2] != ours[2])
    throw ConfigError("built for compiler ABI " + plain_text(theirs[2]) + ", but this is compiler ABI " + ours[2] + "; build it again");
}

// Registrations reach the registry of the shared library; a binary that holds everything itself has another one.
void require_shared_library() {
  if (::dlopen(FL_LIBRARY_NAME, RTLD_NOLOAD | RTLD_LAZY) == nullptr)
    throw ConfigError("this fedbits holds everything in one file and cannot load plug-ins; use one that is built with FL_SHARED=ON");
}

Plugin load(const fs::path& file) {
  const std::string bytes = read_bytes(file);
  check_stamp(stamp_of(bytes));
  require_shared_library();
  Plugin plugin{.file = file, .sha256 = sha256_of(std::as_bytes(std::span(bytes))), .parts = {}};
  const std::vector<PartName> before = registered_parts();
  probe_plugin(file, plugin_time());
  const std::string why = open_plugin(file);
  if (!why.empty()) throw ConfigError(plain_text(why));
  const std::vector<PartName> after = registered_parts();
  std::ranges::set_difference(after, before, std::back_inserter(plugin.parts));
  if (plugin.parts.empty()) throw ConfigError("it registers no part");
  return plugin;
}

}  // namespace

std::vector<PartName> registered_parts() {
  std::vector<PartName> parts;
  const Registry& registry = Registry::instance();
  for (const std::string& role : registry.roles())
    for (const std::string& name : registry.names(role)) parts.push_back({role, name});
  std::ranges::sort(parts);
  return parts;
}

std::vector<Plugin> load_plugins(const std::vector<std::string>& files) {
  std::vector<Plugin> plugins;
  std::vector<fs::path> seen;
  Problems problems;
  for (const std::string& name : files) {
    std::error_code ignored;
    const fs::path same = fs::weakly_canonical(name, ignored);
    if (std::ranges::find(seen, same) != seen.end()) continue;
    seen.push_back(same);
    try {
      plugins.push_back(load(name));
    } catch (const Error& error) {
      problems.push_back({"", "plug-in " + name + ": " + error.what()});
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return plugins;
}

std::vector<PartName> parts_of(const Scenario& s) {
  std::vector<PartName> parts = {{"data", s.data.synthetic.kind},
                                 {"partitioner", s.partition.part.kind},
                                 {"model", s.model.part.kind},
                                 {"local_update", s.local.kind},
                                 {"participation", s.participation.part.kind},
                                 {"feedback", s.feedback_up.kind},
                                 {"compressor", s.down.part.kind},
                                 {"server_optimizer", s.server.part.kind},
                                 {"aggregation", s.aggregation.kind},
                                 {"local_optimizer", s.local_optimizer.kind},
                                 {"postprocessor", s.postprocessor.kind},
                                 {"delivery", s.delivery.kind},
                                 {"devices", s.devices.kind},
                                 {"network", s.network.kind},
                                 {"availability", s.availability.kind},
                                 {"asynchronous", s.asynchronous.kind}};
  for (const auto& [_, spec] : s.up) parts.push_back({"compressor", spec.part.kind});
  for (const NamedPart& measure : s.evaluate.measures) parts.push_back({"measure", measure.part});
  std::erase_if(parts, [](const PartName& part) { return part.name.empty(); });
  return parts;
}

std::vector<PluginUse> plugins_used(const Scenario& scenario, const std::vector<Plugin>& plugins) {
  const std::vector<PartName> parts = parts_of(scenario);
  std::vector<PluginUse> used;
  for (const Plugin& plugin : plugins)
    if (std::ranges::find_first_of(plugin.parts, parts) != plugin.parts.end())
      used.push_back({plugin.file.filename().string(), plugin.sha256});
  return used;
}

}  // namespace fl
