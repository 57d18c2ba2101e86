#include "scenarios/file/stored_scenario.hpp"

#include "scenarios/file/toml_reader.hpp"

namespace fl {

Value stored_scenario(const std::string& resolved_toml, const std::string& source) {
  ProblemList ignored;  // about keys that no option can take: they are shown all the same
  return parse_toml(resolved_toml, source, ignored).value();
}

}  // namespace fl
