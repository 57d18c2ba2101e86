// Fields of a scenario's tables that are more than a value with bounds.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/options.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// Adds a field that is unset until a scenario sets it. Bounds and texts are those of a plain field.
template <class T, class Store, class Load>
Field& field_through(Schema& schema, const std::string& name, const std::string& type, const std::string& doc, Store store, Load load) {
  return schema.add(Field(
      name, type, doc,
      [name, store](const Value& value) -> std::optional<std::string> {
        T plain{};
        Schema one;
        auto why = one.field(name, plain, "").assign(value);
        if (!why) store(plain);
        return why;
      },
      load));
}

Field& optional_number(Schema& schema, const std::string& name, std::optional<double>& value, const std::string& doc);

template <class E>
Field& optional_choice(Schema& schema, const std::string& name, std::optional<E>& value,
                       const std::vector<std::pair<E, std::string>>& names, const std::string& doc) {
  Schema one;
  Field plain = one.choice(name, value, std::vector<std::pair<std::optional<E>, std::string>>(names.begin(), names.end()), "");
  Field& field = schema.add(Field(
      name, "choice", doc, [plain](const Value& v) mutable { return plain.assign(v); },
      [plain, &value] { return value ? plain.value() : Value{}; }));
  field.choices = plain.choices;
  return field;
}

// Adds one of the four seeds: unset in a resolved scenario where all four are equal.
Field& seed_field(Schema& schema, const std::string& name, std::uint64_t& seed, const Seeds& all, const std::string& doc);

// Adds the key `seed`, which sets all four.
void common_seed_field(Schema& schema, Seeds& seeds);

// Adds the meaning of results, which is written into every resolved scenario, so that a run's hash says it. A file need not have it.
// Says that a scenario's results_version is not that of this build.
[[nodiscard]] std::string other_results_text(std::int64_t version, std::int64_t own);
void results_version_field(Schema& schema);

}  // namespace fl
