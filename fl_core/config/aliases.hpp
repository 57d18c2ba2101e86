// Other names of parts, as publications and their code call them: a name, the part it stands for, and the options that go with it.
//
// A scenario that names an alias is resolved to the part itself: results and hashes know parts alone. Options that the scenario sets
// replace those of the alias.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/options.hpp"

namespace fl {

struct Alias {
  std::string role, name;  // of a name that ends in '#': "noniid-#label2" is "noniid-#label#" with the number 2
  std::string part;
  std::vector<std::pair<std::string, Value>> settings{};
  std::string number_key{};  // the option that the number sets
  std::string source{};

  [[nodiscard]] std::string shown() const { return number_key.empty() ? name : name.substr(0, name.size() - 1) + "K"; }
};

// Called before main, by the file of the part. Throws Error when the name is taken.
FL_API bool add_alias(Alias alias);
// Those of a part, in order of their names.
[[nodiscard]] FL_API std::vector<Alias> aliases_of(const std::string& role, const std::string& part);
// Every alias' name of a role, sorted.
[[nodiscard]] FL_API std::vector<std::string> alias_names(const std::string& role);

// The part that `name` stands for, which is `name` itself when it is no alias, and its options in this role.
struct NamedPart {
  std::string part;
  Options options;
};
// Throws ConfigError, with the nearest name, when there is neither a part nor an alias of this name, or its number is refused.
[[nodiscard]] FL_API NamedPart resolve_name(const std::string& role, const std::string& name);

}  // namespace fl
