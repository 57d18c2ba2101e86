#include "study/planning/checked_parts.hpp"

#include <algorithm>
#include <iterator>

#include "checks/check.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {
namespace {

std::vector<PartName> all_parts() {
  std::vector<PartName> parts;
  for (const std::string& role : Registry::instance().roles())
    for (const std::string& name : Registry::instance().names(role)) parts.push_back({role, name});
  return parts;
}

bool has_checks(const PartName& part) { return !checks::checks_of(part.role).empty(); }

// Returns the parts with this name, in any role that has checks, or else in the others. Throws ConfigError with the nearest name if there
// are none.
std::vector<PartName> parts_named(const std::string& name) {
  std::vector<PartName> found, all = all_parts();
  std::ranges::copy_if(all, std::back_inserter(found), [&](const PartName& part) { return part.name == name; });
  if (std::ranges::any_of(found, has_checks)) std::erase_if(found, [](const PartName& part) { return !has_checks(part); });
  if (!found.empty()) return found;
  std::vector<std::string> known;
  for (const PartName& part : all) known.push_back(part.name);
  const std::string near = nearest_name(name, known);
  throw ConfigError("check: there is no part '" + name + "'" +
                    (near.empty() ? "; a part of your own needs --plugin FILE.so" : "; did you mean '" + near + "'?") +
                    " (`fedbits list` shows all)");
}

}  // namespace

std::vector<PartName> parts_to_check(const CheckArguments& arguments, const std::vector<Plugin>& plugins) {
  std::vector<PartName> parts;
  for (const std::string& name : arguments.names) std::ranges::copy(parts_named(name), std::back_inserter(parts));
  if (arguments.names.empty())
    for (const Plugin& plugin : plugins) std::ranges::copy(plugin.parts, std::back_inserter(parts));
  if (parts.empty()) throw ConfigError("check: nothing to check; name a part, give --plugin FILE.so, or both");
  return parts;
}

void require_known_checks(const std::vector<std::string>& only, const std::vector<PartName>& parts) {
  std::vector<std::string> known;
  for (const PartName& part : parts)
    for (const checks::Check& check : checks::checks_of(part.role)) known.push_back(check.name);
  for (const std::string& name : only) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string near = nearest_name(name, known);
    throw ConfigError("--only: these parts have no check '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
}

void require_checks(const std::vector<PartName>& parts) {
  std::string unchecked;
  for (const PartName& part : parts)
    if (!has_checks(part)) unchecked += (unchecked.empty() ? "" : ", ") + part.role + " " + part.name;
  if (unchecked.empty()) return;
  std::string roles;
  for (const std::string& role : Registry::instance().roles())
    if (!checks::checks_of(role).empty()) roles += (roles.empty() ? "" : ", ") + role;
  throw ConfigError("check: there are no checks for this role: " + unchecked + " (roles with checks: " + roles +
                    "); name the parts to be checked");
}

}  // namespace fl
