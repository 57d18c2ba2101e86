// Errors about keys of a scenario, thrown by code that does not know the position of the key in the file.
//
// A throw site names the key, key_error("evaluate.average", "needs f*"), or, inside a part, the option alone. The code that calls the part
// adds the section (about_key), and the code that runs a scenario adds file, line and column (scenarios/file/key_places.hpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"

namespace fl {

// Returns the error of one key. Its text is "key: message" until the position of the key is known.
[[nodiscard]] inline ConfigError key_error(std::string key, std::string message) {
  return ConfigError(std::vector<Problem>{{std::move(key), std::move(message)}});
}

// Returns f(), which concerns the section `key`, such as "partition.kind". If f throws, a problem that names an option gets the full path
// of the option, a problem without a name gets `key`, and a problem with a full path keeps it.
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
