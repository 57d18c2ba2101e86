// Errors about keys of a scenario, from code that does not know where the keys were written.
//
// A throw site names the key, key_error("evaluate.average", "needs f*"), or, inside of a part, the option alone. The code that drives
// the part adds the section (about_key), and the code that runs a scenario adds file, line and column (scenarios/file/key_places.hpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"

namespace fl {

// Returns the error of one key. Its text is "key: message" until the place of the key is known.
[[nodiscard]] inline ConfigError key_error(std::string key, std::string message) {
  return ConfigError(std::vector<Problem>{{std::move(key), std::move(message)}});
}

// Returns what f returns, which is about the section of `key`, such as "partition.kind". Of the problems that f throws, those that name an
// option get the option's whole path, those that name nothing get `key`, and those that name a whole path keep it.
template <class F>
decltype(auto) about_key(const std::string& key, const F& f) {
  try {
    return f();
  } catch (const ConfigError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      if (problem.where.empty())
        problem.where = key;
      else if (problem.where.find('.') == std::string::npos)
        problem.where = key.substr(0, key.rfind('.') + 1) + problem.where;
    }
    throw ConfigError(std::move(problems));
  }
}

}  // namespace fl
