// Plug-ins: parts that lie in shared objects of their own and register where the built-in ones do.
//
// A file is refused, with the reason, unless it is a shared object whose stamp (fl_core/config/plugin_stamp.hpp) names this version of the
// plug-in interface and this compiler ABI; only then is it loaded, which runs its registrations. It stays loaded until the process ends.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/file/scenario.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// A part by role and name, as in {"compressor", "top_k"}.
struct PartName {
  std::string role, name;
  // NOLINTNEXTLINE(modernize-use-nullptr): means something else by it
  auto operator<=>(const PartName&) const = default;
};

struct Plugin {
  std::filesystem::path file;
  std::string sha256;           // of the file as it was loaded
  std::vector<PartName> parts;  // that it brought, sorted
};

// Loads files in their order; one that is given twice is loaded once. Throws ConfigError with the problems of all of them.
[[nodiscard]] FL_API std::vector<Plugin> load_plugins(const std::vector<std::string>& files);

// All parts that are registered, sorted.
[[nodiscard]] FL_API std::vector<PartName> registered_parts();

// Every part that a scenario names.
[[nodiscard]] FL_API std::vector<PartName> parts_of(const Scenario& scenario);

// Returns the plug-ins that bring a part of the scenario, as its results record them.
[[nodiscard]] FL_API std::vector<PluginUse> plugins_used(const Scenario& scenario, const std::vector<Plugin>& plugins);

}  // namespace fl
