// Aliases are other names of parts, as publications and their code use them. An alias has a name, the part that it stands for, and the
// options that belong to it.
//
// A scenario that names an alias is resolved to the part itself: results and hashes contain parts only. Options that the scenario sets
// replace those of the alias.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/options.hpp"

namespace fl {

struct Alias {
  std::string role, name;  // a name may end in '#': "noniid-#label2" is "noniid-#label#" with the number 2
  std::string part;
  std::vector<std::pair<std::string, Value>> settings{};
  std::string number_key{};  // the option that the number sets
  std::string source{};

  [[nodiscard]] std::string shown() const { return number_key.empty() ? name : name.substr(0, name.size() - 1) + "K"; }
};

// Registers an alias. The file of the part calls it before main. Throws Error if the name is taken.
FL_API bool add_alias(Alias alias);
// Returns the aliases of a part, sorted by name.
[[nodiscard]] FL_API std::vector<Alias> aliases_of(const std::string& role, const std::string& part);
// Returns the names of all aliases of a role, sorted.
[[nodiscard]] FL_API std::vector<std::string> alias_names(const std::string& role);

// The part that a name stands for, with its options in this role. A name that is no alias stands for itself.
struct NamedPart {
  std::string part;
  Options options;
};
// Resolves a name. Throws ConfigError with the nearest name if there is neither a part nor an alias of this name, or if its number is
// refused.
[[nodiscard]] FL_API NamedPart resolve_name(const std::string& role, const std::string& name);

}  // namespace fl
