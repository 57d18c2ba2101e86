// Tests that every key that `fedbits list reference` names changes something observable.
//
// The program walks the schema: all keys of all tables, and all options of all parts of every role, plug-in folders included. Each key is
// set to other valid values in scenarios in which it can matter; one of them must change the final model, a row, the bits, the split or a
// resolved constant. The scenario of a feedback or a local update contains the parts that it needs (tests/support/fitting.hpp). A key
// without an effect there is tried with each choice and switch of its part, and then on other problems (surroundings()). kContexts lists
// the settings for keys for which that is not enough. A new key without any effect fails here. An option of a compressor has to have an
// effect, or to be refused, in every unit of its input.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "fl_core/config/registry.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/file/sections.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "tests/properties/every_key_contexts.hpp"
#include "tests/support/fitting.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::Context;
using Settings = std::vector<std::string>;

// A key of a table, of a part in it ("" = the table's own), or of a layer (table "layer").
struct Key {
  std::string table, part, name;
  [[nodiscard]] std::string text() const { return table + " | " + part + " | " + name; }
};

bool fits(const std::string& pattern, const std::string& text) { return pattern == "*" || pattern == text; }

bool fits(const Context& context, const Key& key) {
  return fits(context.table, key.table) && fits(context.part, key.part) && fits(context.key, key.name);
}

// Everything that a run shows but its hash and its times.
std::string fingerprint(const RunResult& result) {
  const RunRecord& record = result.record;
  std::ostringstream text;
  text << record.name << ' ' << record.seed << ' ' << to_string(record.status) << ' ' << record.rounds << ' ' << record.bits_up << ' '
       << record.bits_down << ' ' << record.checksum << ' ' << record.split_hash << ' ' << record.parameters << '\n';
  for (const ResolvedConstant& constant : record.constants) text << constant.name << '=' << constant.value << '\n';
  Hash64 rows;
  for (const RoundRow& row : result.rows) {
    for (const RoundColumn& column : kRoundColumns) std::visit([&](auto member) { rows.add_value(row.*member); }, column.member);
    rows.add_values(std::span<const double>(row.more));
  }
  text << to_hex(rows.value());
  return text.str();
}

// Returns settings with a value of this kind that differs from the field's own; several, because some may be equivalent.
Settings other_values(const Field& field) {
  const Value now = field.value();
  Settings values;
  const auto add = [&](const Value& value) {
    if (to_string(value) != to_string(now)) values.push_back(to_string(value));
  };
  if (const bool* flag = std::get_if<bool>(&now.data)) add(Value{!*flag});
  for (const std::string& choice : field.choices) add(Value{choice});
  if (field.type == "integer") {
    const auto* number = std::get_if<std::int64_t>(&now.data);
    const std::int64_t n = number == nullptr ? 0 : *number;
    for (const std::int64_t value : {n + 1, std::int64_t{2}, std::int64_t{3}, n / 2, 2 * n}) add(Value{value});
  }
  if (field.type.starts_with("number")) {
    const auto* number = std::get_if<double>(&now.data);
    const double x = number == nullptr ? 0.5 : *number;
    for (const double value : {x / 2, x + 0.5, 0.3, 2 * x, 5.0}) add(Value{value});
  }
  return values;
}

// Returns candidates for the settings with which a key of a part shows an effect: none, one choice or switch of its other options, or
// another problem. The first that shows an effect counts.
std::vector<Settings> surroundings(const Key& key, const std::vector<Field>& fields) {
  std::vector<Settings> all = {{}};
  if (key.part.empty() || key.table == "layer") return all;
  for (const Field& field : fields) {
    if (field.name == key.name) continue;
    const Value now = field.value();
    if (field.choices.empty() && !std::holds_alternative<bool>(now.data)) continue;
    for (const std::string& value : other_values(field)) all.push_back({key.table + "." + field.name + "=" + value});
  }
  all.push_back({"compressor.up.unit='step'"});
  all.push_back({"participation={kind='uniform', clients=2}"});
  all.push_back({"local={kind='sgd', batch=4, steps=2, learning_rate=0.1}"});
  all.push_back({test::kMlp[0], "compressor.up.scope='tensor'"});
  all.push_back(test::kImages);
  all.push_back(test::kText);
  return all;
}

class EveryKey : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_keys_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const auto& [file, bytes] : test::context_files()) {
      fs::create_directories((folder_ / file).parent_path());
      std::ofstream(folder_ / file, std::ios::binary) << bytes;
    }
    runner_ = std::make_unique<CellRunner>(DataCatalog(folder_.string()), MachineOptions{});
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // Fingerprint of the base scenario with these settings; "refused: ..." where it is.
  const std::string& outcome(const Settings& settings) {
    std::string text;
    for (const std::string& setting : settings) text += setting + "\n";
    const auto [place, is_new] = outcomes_.try_emplace(text);
    if (!is_new) return place->second;
    try {
      Settings taken = settings;
      for (std::string& setting : taken) std::erase(setting, '@');
      Cell cell = parse_cells(test::kBase, "base.toml", taken).at(0);
      cell.folder = folder_;
      place->second = fingerprint(runner_->run(cell, {}));
      ++num_runs_;
    } catch (const std::exception& error) {
      place->second = std::string("refused: ") + error.what();
    }
    return place->second;
  }

  void check(const Key& key, const Field& field, const Settings& about_part, const std::vector<Field>& fields = {}) {
    if (const char* only = std::getenv("FL_KEY"); only != nullptr && key.text().find(only) == std::string::npos) return;
    for (const auto& [table, part, name, reason] : test::kExempt)
      if (fits(table, key.table) && fits(part, key.part) && fits(name, key.name)) return;
    ++num_keys_;
    Settings beside, values;
    bool refusal_counts = false;
    const Context* instead = nullptr;
    for (const Context& context : test::kContexts) {
      if (!fits(context, key)) continue;
      beside.insert(beside.end(), context.settings.begin(), context.settings.end());
      if (!context.values.empty()) values = context.values;
      if (!context.instead.empty()) instead = &context;
      refusal_counts = refusal_counts || context.refusal_counts;
    }
    if (values.empty()) values = other_values(field);
    std::string tried;
    for (const Settings& around : surroundings(key, fields)) {
      Settings base = about_part;
      base.insert(base.end(), around.begin(), around.end());
      base.insert(base.end(), beside.begin(), beside.end());
      if (!changes(key, base, values, instead, refusal_counts, tried)) continue;
      if (key.table == "compressor.up" && !key.part.empty()) check_units(key, base, values, instead);
      return;
    }
    ADD_FAILURE() << key.text() << ": no value changes anything:" << tried;
  }

  // Checks a compressor's option that has an effect in one unit in all units: a value that is accepted in a unit has to change something
  // there.
  void check_units(const Key& key, const Settings& base, const Settings& values, const Context* instead) {
    static const std::vector<std::pair<std::string, Settings>> kUnits = {
        {"gradient", {"local={kind='gradient', batch=4, learning_rate=0.5}", "compressor.up.unit='gradient'"}},
        {"step", {"local={kind='gradient', batch=4, learning_rate=0.5}", "compressor.up.unit='step'"}},
        {"update", {"local={kind='sgd', batch=4, steps=2, learning_rate=0.1}", "compressor.up.unit='update'"}}};
    for (const auto& [unit, settings] : kUnits) {
      Settings in_unit = base;
      std::erase_if(in_unit, [](const std::string& s) { return s.starts_with("local=") || s.starts_with("compressor.up.unit="); });
      in_unit.insert(in_unit.end(), settings.begin(), settings.end());
      const std::string before = outcome(in_unit);
      if (before.starts_with("refused")) continue;
      bool has_accepted = false, has_changed = false;
      for (const std::string& value : values) {
        const std::string after = outcome(with(in_unit, key, value, instead));
        has_accepted = has_accepted || !after.starts_with("refused");
        has_changed = has_changed || (after != before && !after.starts_with("refused"));
      }
      EXPECT_TRUE(has_changed || !has_accepted) << key.text() << " is accepted and changes nothing in unit \"" << unit << '"';
    }
  }

  // Returns whether one of the values has an effect in this scenario. If none has, adds the attempts to `tried`.
  bool changes(const Key& key, const Settings& base, const Settings& values, const Context* instead, bool refusal_counts,
               std::string& tried) {
    const std::string before = outcome(base);
    std::string text;
    for (const std::string& setting : base) text += (text.empty() ? "" : ", ") + setting;
    tried += "\n  with " + text + ":";
    if (before.starts_with("refused")) {
      tried += " " + before;
      return false;
    }
    for (const std::string& value : values) {
      const std::string after = outcome(with(base, key, value, instead));
      if (after != before && (refusal_counts || !after.starts_with("refused"))) return true;
      tried += "\n    " + value + ": " + (after.starts_with("refused") ? after : "no change");
    }
    return false;
  }

  // Settings that make the part take part in a run.
  static Settings about(const std::string& table, const std::string& part) {
    if (table == "feedback.up") return test::fitting_study(part).settings();
    if (table == "local") {  // with the default number of steps
      test::Fitting study = test::fitting_study_of_local_update(part);
      std::erase_if(study.local.options, [](const auto& option) { return option.first == "steps"; });
      return study.settings();
    }
    return {table + "={kind='" + part + "'}"};
  }

  static Settings with(Settings base, const Key& key, const std::string& value, const Context* instead) {
    if (instead != nullptr) return instead->instead;
    if (key.table == "layer") {
      for (std::string& setting : base) {
        const std::size_t at = setting.find('@');
        if (at == std::string::npos) continue;
        const bool is_first = setting[at - 1] == '(';
        setting.replace(at, 1, (is_first ? "" : ", ") + key.name + "=" + value);
      }
      return base;
    }
    base.push_back((key.table.empty() ? "" : key.table + ".") + key.name + "=" + value);
    return base;
  }

  fs::path folder_;
  std::unique_ptr<CellRunner> runner_;
  std::map<std::string, std::string> outcomes_;
  std::size_t num_runs_ = 0, num_keys_ = 0;
};

TEST_F(EveryKey, OfEveryTableHasAnEffect) {
  Scenario defaults;
  for (Section& section : sections_of(defaults))
    for (const Field& field : section.keys.fields()) check({section.path, "", field.name}, field, {});
  EXPECT_GT(num_keys_, 60u);
}

TEST_F(EveryKey, OfEveryPartHasAnEffect) {
  Scenario defaults;
  for (Section& section : sections_of(defaults)) {
    if (section.part == nullptr || section.path == "compressor.down") continue;  // its parts are those of compressor.up
    for (const std::string& part : Registry::instance().names(section.role)) {
      Options options = Registry::instance().default_options(section.role, part);
      Schema schema = options.schema();
      for (const Field& field : schema.fields()) check({section.path, part, field.name}, field, about(section.path, part), schema.fields());
    }
  }
  EXPECT_GT(num_keys_, 280u);
}

TEST_F(EveryKey, OfEveryLayerHasAnEffect) {
  for (const std::string& layer : Registry::instance().names("layer")) {
    Options options = Registry::instance().default_options("layer", layer);
    Schema schema = options.schema();
    for (const Field& field : schema.fields()) check({"layer", layer, field.name}, field, {});
  }
  EXPECT_GT(num_keys_, 25u);
}

}  // namespace
}  // namespace fl
