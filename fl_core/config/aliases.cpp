#include "fl_core/config/aliases.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "fl_core/config/meanings.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {
namespace {

using Key = std::pair<std::string, std::string>;  // role, name

std::map<Key, Alias>& all_aliases() {
  static std::map<Key, Alias> aliases;
  return aliases;
}

// The number at the end of "noniid-#label2" where the alias is "noniid-#label#".
std::optional<std::int64_t> number_in(const std::string& name, const Alias& alias) {
  if (alias.number_key.empty() || !alias.name.ends_with('#')) return std::nullopt;
  const std::string stem = alias.name.substr(0, alias.name.size() - 1);
  if (!name.starts_with(stem) || name.size() == stem.size()) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + stem.size(), name.data() + name.size(), number);
  return error == std::errc{} && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

void set(Schema& schema, const std::string& name, const std::string& key, const Value& value) {
  Field* field = schema.find(key);
  if (field == nullptr) throw Error("alias \"" + name + "\": its part has no option \"" + key + "\"");
  if (const auto refused = field->assign(value)) throw ConfigError("\"" + name + "\": " + key + " " + *refused);
}

NamedPart make(const Alias& alias, const std::string& name, std::optional<std::int64_t> number) {
  NamedPart named{alias.part, Registry::instance().default_options(alias.role, alias.part)};
  Schema schema = named.options.schema();
  for (const auto& [key, value] : alias.settings) set(schema, name, key, value);
  if (number) set(schema, name, alias.number_key, Value{*number});
  return named;
}

}  // namespace

bool add_alias(Alias alias) {
  Key key{alias.role, alias.name};
  const std::string name = alias.name;
  if (!all_aliases().emplace(std::move(key), std::move(alias)).second) throw Error("two aliases are called \"" + name + "\"");
  return true;
}

std::vector<Alias> aliases_of(const std::string& role, const std::string& part) {
  std::vector<Alias> found;
  for (const auto& [key, alias] : all_aliases())
    if (key.first == role && alias.part == part) found.push_back(alias);
  return found;
}

std::vector<std::string> alias_names(const std::string& role) {
  std::vector<std::string> names;
  for (const auto& [key, alias] : all_aliases())
    if (key.first == role) names.push_back(key.second);
  return names;
}

NamedPart resolve_name(const std::string& role, const std::string& name) {
  if (!Registry::instance().contains(role, name)) {
    const auto known = all_aliases().find({role, name});
    if (known != all_aliases().end() && known->second.number_key.empty()) return make(known->second, name, std::nullopt);
    for (const auto& [key, alias] : all_aliases())
      if (key.first == role)
        if (const auto number = number_in(name, alias)) return make(alias, name, number);
    std::vector<std::string> names = Registry::instance().names(role);
    for (std::string& alias : alias_names(role)) names.push_back(std::move(alias));
    const std::string near = meanings_of(name).empty() ? nearest_name(name, names) : "";
    if (!near.empty() && !Registry::instance().contains(role, near))
      throw ConfigError("unknown " + role + " \"" + name + "\"; did you mean \"" + near + "\"?");
  }
  return {name, Registry::instance().default_options(role, name)};
}

}  // namespace fl
