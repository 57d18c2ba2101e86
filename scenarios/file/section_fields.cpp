#include "scenarios/file/section_fields.hpp"

#include "scenarios/file/results_version.hpp"

namespace fl {

Field& optional_number(Schema& schema, const std::string& name, std::optional<double>& value, const std::string& doc) {
  return field_through<double>(
      schema, name, "number", doc, [&value](double x) { value = x; }, [&value] { return value ? Value{*value} : Value{}; });
}

Field& seed_field(Schema& schema, const std::string& name, std::uint64_t& seed, const Seeds& all, const std::string& doc) {
  const auto store = [&seed](std::int64_t s) { seed = static_cast<std::uint64_t>(s); };
  const auto load = [&seed, &all] {
    const bool is_common = all.data == all.init && all.data == all.sampling && all.data == all.compressor;
    return is_common ? Value{} : Value{static_cast<std::int64_t>(seed)};  // `seed` above says it
  };
  return field_through<std::int64_t>(schema, name, "integer", doc, store, load).at_least(0);
}

void common_seed_field(Schema& schema, Seeds& seeds) {
  const auto store = [&seeds](std::int64_t s) {
    const auto seed = static_cast<std::uint64_t>(s);
    seeds = {seed, seed, seed, seed};
  };
  const auto load = [&seeds] {
    const bool is_common = seeds.data == seeds.init && seeds.data == seeds.sampling && seeds.data == seeds.compressor;
    return is_common ? Value{static_cast<std::int64_t>(seeds.data)} : Value{};
  };
  field_through<std::int64_t>(schema, "seed", "integer", "all four seeds at once; [seeds] sets them one by one", store, load).at_least(0);
}

std::string other_results_text(std::int64_t version, std::int64_t own) {
  return "is " + std::to_string(version) + ", and this fedbits gives other results, those of " + std::to_string(own) +
         "; drop the line to run the scenario with this fedbits, or use the fedbits that wrote it";
}

void results_version_field(Schema& schema) {
  const auto check = [](const Value& value) -> std::optional<std::string> {
    const auto* version = std::get_if<std::int64_t>(&value.data);
    if (version == nullptr) return "must be an integer, is " + to_string(value);
    if (*version >= kLeastResultsVersion && *version <= kResultsVersion)
      return std::nullopt;  // which of them is checked when all keys are known
    return other_results_text(*version, kResultsVersion);
  };
  schema.add(
      Field(kResultsVersionKey, "integer",
            "version of the meaning of results, raised for every scenario whose results a correction changes; fedbits writes it into "
            "resolved scenarios, a file need not contain it, and a number other than this fedbits has for the scenario is refused",
            check, [] { return Value{kLeastResultsVersion}; }));
}

}  // namespace fl
