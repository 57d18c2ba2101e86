// Any text is read as a rule of step sizes and evaluated, or rejected with ConfigError. An accepted rule must be equal after it is written
// and read again.
#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "fl_core/config/error.hpp"
#include "fl_core/config/expression.hpp"
#include "fl_core/config/rule_field.hpp"
#include "tests/fuzz/target.hpp"

namespace {

void expression(std::span<const std::byte> bytes) {
  const std::string text(fl::fuzz::as_text(bytes));
  try {
    const fl::Expression rule(text);
    std::map<std::string, double> names = {{"L", 0.25}, {"n", 20}};
    for (const std::string& name : fl::names_of(rule)) names.try_emplace(name, 0.5);
    const fl::Expression again(rule.text());
    fl::fuzz::require(again.text() == rule.text() && again.is_number() == rule.is_number(), "a rule reads as another one");
    fl::fuzz::require(again.resolve(names) == rule.resolve(names), "a rule has two values");
  } catch (const fl::ConfigError& error) {
    fl::fuzz::require(!error.problems().empty(), "refused without a reason");
  }
}

const fl::fuzz::Register kExpression("expression", expression);

}  // namespace
