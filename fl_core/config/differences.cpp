#include "fl_core/config/differences.hpp"

#include <map>
#include <utility>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

std::map<std::pair<std::string, std::string>, std::string>& all_differences() {
  static std::map<std::pair<std::string, std::string>, std::string> differences;
  return differences;
}

}  // namespace

bool add_difference(const Difference& difference) {
  const auto [known, is_new] = all_differences().emplace(std::pair{difference.role, difference.name}, difference.text);
  if (!is_new && known->second != difference.text)
    throw Error(difference.role + " \"" + difference.name + "\" has two texts of how it differs from its source");
  return true;
}

std::string difference_of(const std::string& role, const std::string& name) {
  const auto found = all_differences().find({role, name});
  return found == all_differences().end() ? "" : found->second;
}

}  // namespace fl
