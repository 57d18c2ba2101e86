#include "fl_core/config/rule_field.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace fl {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

// Says which name of a rule is none of those known.
std::optional<std::string> find_unknown(const Expression& rule, const std::vector<std::string>& known) {
  for (const std::string& name : names_of(rule)) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_name(name, known);
    return "\"" + rule.text() + "\": unknown name \"" + name + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?") +
           " (known here: " + listed(known) + ")";
  }
  return std::nullopt;
}

}  // namespace

Field& rule_field(Schema& schema, std::string name, Expression& rule, std::vector<std::string> names, const std::string& doc) {
  const std::string text = doc + "; a rule may name " + listed(names);
  auto set = [&rule, names = std::move(names)](const Value& value) -> std::optional<std::string> {
    Expression given;
    Schema plain;
    if (auto why = plain.field("rule", given, "").assign(value)) return why;
    if (auto why = find_unknown(given, names)) return why;
    rule = std::move(given);
    return std::nullopt;
  };
  auto get = [&rule] { return rule.is_number() ? Value{rule.resolve({})} : Value{rule.text()}; };
  return schema.add(Field(std::move(name), "number or rule", text, std::move(set), std::move(get)));
}

Field& learning_rate_field(Schema& schema, Expression& rule, const std::string& doc) {
  return rule_field(schema, "learning_rate", rule, {"L", "L_max", "mu", "l2", "nonconvex", "n", "m", "d", "theory", "tight"}, doc);
}

}  // namespace fl
