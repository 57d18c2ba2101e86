// Tests that bad scenario files are rejected with exit code 2, file, line and column, the key's name, and the nearest name if one is
// misspelt, without long computations and without a file on the disk.
//
// The cases are made from the schema: every key of every table, part and layer gets values that have another type, exceed its bounds, are
// not finite or are huge, and a misspelt name; tables are misspelt, repeated and misplaced. Contradictions between keys that are valid
// individually are in tests/properties/contradictions.hpp. FL_BROKEN=text selects the cases whose names contain the text, and prints their
// errors.
#include "tests/properties/broken_scenarios.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/file/sections.hpp"
#include "tests/properties/contradictions.hpp"
#include "tests/properties/every_key_contexts.hpp"
#include "tests/support/binary.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::BrokenCase;
using test::BrokenJudge;
using test::BrokenVerdict;
using test::text_of;
using test::with_line;

// A swap of two letters, or one letter less: what fingers do. "" where the name is too short for that.
std::string misspelt(const std::string& name) {
  if (name.size() < 4) return "";
  std::string wrong = name;
  for (std::size_t i = name.size() / 2; i + 1 < name.size(); ++i)
    if (name[i] != name[i + 1] && name[i] != '_' && name[i + 1] != '_') {
      std::swap(wrong[i], wrong[i + 1]);
      return wrong;
    }
  return name.substr(0, name.size() - 1);
}

struct BadValue {
  std::string kind, text;
};

// "must be >= 1, <= 100" as values next to the bounds, outside.
void add_beyond(const std::string& constraint, bool is_whole, std::vector<BadValue>& values) {
  std::istringstream parts(constraint);
  for (std::string relation, number; parts >> relation >> number;) {
    if (number.ends_with(",")) number.pop_back();
    const double bound = std::stod(number);
    const bool is_lower = relation[0] == '>', is_open = relation.size() == 1;
    const double step = is_open ? 0 : std::max(1.0, std::fabs(bound) * 1e-3);
    const double beyond = is_lower ? bound - step : bound + step;
    if (is_whole && std::fabs(beyond) > 9e18) continue;
    values.push_back(
        {is_lower ? "below" : "above", is_whole ? std::to_string(static_cast<std::int64_t>(beyond)) : to_string(Value{beyond})});
  }
}

// Seeds alone take every integer of TOML that is not negative.
bool is_seed(const Field& field) {
  Scenario scenario;
  for (Section& section : sections_of(scenario))
    if (section.path == "seeds" && section.keys.find(field.name) != nullptr && section.keys.find(field.name)->doc == field.doc) return true;
  return field.name.ends_with("seed");
}

// Values that the field cannot take.
std::vector<BadValue> bad_values(const Field& field) {
  const bool is_whole = field.type == "integer", is_number = field.type.starts_with("number");
  std::vector<BadValue> values = {{"date", "2024-01-01"}, {"table", "{ a = 1 }"}};
  if (field.type != "string") values.push_back({"string", "\"no such value, ever\""});
  if (field.type != "true or false" && field.type != "true, false or path") values.push_back({"boolean", "true"});
  if (!field.type.starts_with("list")) values.push_back({"list", "[true]"});
  if (field.type.starts_with("list")) values.insert(values.end(), {{"scalar", "3"}, {"list of lists", "[[[1]]]"}});
  if (!is_whole && !is_number) values.push_back({"number", "3.5"});
  if (is_whole || is_number)
    for (const char* text : {"nan", "inf", "-inf"}) values.push_back({text, text});
  if (is_whole) values.push_back({"fraction", "1.5"});
  if (is_whole && !is_seed(field)) values.push_back({"huge", "9223372036854775807"});
  values.push_back({"out of range", "99999999999999999999999"});
  add_beyond(field.constraint(), is_whole, values);
  for (const std::string& choice : field.choices)
    if (const std::string wrong = misspelt(choice); !wrong.empty()) values.push_back({"misspelt", to_string(Value{wrong})});
  return values;
}

bool context_fits(const std::string& pattern, const std::string& text) { return pattern == "*" || pattern == text; }

class BrokenScenarios : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_broken_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = fs::canonical(name);
    for (const auto& [file, bytes] : test::context_files()) {
      fs::create_directories((folder_ / file).parent_path());
      std::ofstream(folder_ / file, std::ios::binary) << bytes;
    }
    for (const auto& [file, bytes] : test::contradiction_files()) std::ofstream(folder_ / file, std::ios::binary) << bytes;
    fs::create_directories(folder_ / "tmp");
    before_ = fs::current_path();
    fs::current_path(folder_);
    ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
    judge_ = std::make_unique<BrokenJudge>(folder_);
  }
  void TearDown() override {
    ::unsetenv("TMPDIR");
    fs::current_path(before_);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    const double share = num_cases_ == 0 ? 0 : 100.0 * static_cast<double>(num_good_) / static_cast<double>(num_cases_);
    std::cout << num_cases_ << " broken scenarios, all conditions hold for " << share << "%; the slowest refusal took " << slowest_s_
              << " s (" << slowest_ << ")\n";
    EXPECT_EQ(num_good_, num_cases_);
  }

  void judge(const BrokenCase& one) {
    const char* only = std::getenv("FL_BROKEN");
    if (only != nullptr && one.name.find(only) == std::string::npos) return;
    const BrokenVerdict verdict = judge_->judge(one);
    ++num_cases_;
    num_good_ += verdict.faults.empty() ? 1 : 0;
    if (verdict.seconds > slowest_s_) {
      slowest_s_ = verdict.seconds;
      slowest_ = one.name;
    }
    for (const std::string& fault : verdict.faults) ADD_FAILURE() << one.name << ": " << fault << "\n  " << verdict.error.substr(0, 600);
    if (only != nullptr) std::cout << one.name << "\n    " << verdict.error.substr(0, 600) << "\n";
  }

  // The scenario in which a key can matter, as resolved text; "" where it is refused itself.
  const std::string& base_of(const std::vector<std::string>& settings) {
    std::string all;
    for (const std::string& setting : settings) all += setting + "\n";
    const auto [place, is_new] = bases_.try_emplace(all);
    if (!is_new) return place->second;
    std::vector<std::string> taken = settings;
    for (std::string& setting : taken) std::erase(setting, '@');
    place->second = parse_cells(test::kBase, "base.toml", taken).at(0).resolved_toml;
    return place->second;
  }

  std::vector<std::string> settings_of(const std::string& table, const std::string& part, const std::string& key,
                                       std::vector<std::string> settings) {
    for (const test::Context& context : test::kContexts)
      if (context_fits(context.table, table) && context_fits(context.part, part) && context_fits(context.key, key))
        settings.insert(settings.end(), context.settings.begin(), context.settings.end());
    return settings;
  }

  void break_key(const std::string& table, const std::string& part, const Field& field, const std::vector<std::string>& about_part) {
    const std::string& base = base_of(settings_of(table, part, field.name, about_part));
    const std::string path = table.empty() ? field.name : table + "." + field.name;
    const std::string name = table + " | " + part + " | " + field.name + ": ";
    for (const BadValue& value : bad_values(field)) {
      const std::string line = field.name + " = " + value.text;
      judge({name + value.kind + " " + value.text,
             with_line(base, table, field.name, line),
             {path, line},
             value.kind == "misspelt" ? "*" : ""});
    }
    const std::string wrong = misspelt(field.name);
    if (!wrong.empty()) judge({name + "misspelt key", with_line(base, table, wrong, wrong + " = 1"), {wrong}, "*"});
    judge({name + "as a table", base + "\n[" + path + ".deeper]\nx = 1\n", {path, field.name}});
  }

  fs::path folder_, before_;
  std::unique_ptr<BrokenJudge> judge_;
  std::map<std::string, std::string> bases_;
  std::size_t num_cases_ = 0, num_good_ = 0;
  double slowest_s_ = 0;
  std::string slowest_;
};

TEST_F(BrokenScenarios, KeysOfTables) {
  Scenario defaults;
  for (Section& section : sections_of(defaults))
    for (const Field& field : section.keys.fields()) break_key(section.path, "", field, {});
  EXPECT_GT(num_cases_, 500u);
}

TEST_F(BrokenScenarios, OptionsOfParts) {
  Scenario defaults;
  for (Section& section : sections_of(defaults)) {
    if (section.part == nullptr || section.path == "compressor.down") continue;  // its parts are those of compressor.up
    for (const std::string& part : Registry::instance().names(section.role)) {
      Options options = Registry::instance().default_options(section.role, part);
      Schema schema = options.schema();
      std::string required;  // options without a default, which are numbers
      for (const Field& field : schema.fields())
        if (field.is_required) required += ", " + field.name + "=1";
      for (const Field& field : schema.fields())
        break_key(section.path, part, field, {section.path + "={kind='" + part + "'" + required + "}"});
    }
  }
  EXPECT_GT(num_cases_, 2000u);
}

TEST_F(BrokenScenarios, NamesOfParts) {
  Scenario defaults;
  for (Section& section : sections_of(defaults)) {
    if (section.part == nullptr) continue;
    std::vector<std::string> names = Registry::instance().names(section.role);
    for (const std::string& alias : alias_names(section.role)) names.push_back(alias);
    for (const std::string& name : names) {
      const std::string wrong = misspelt(name);
      if (wrong.empty() || wrong.find('#') != std::string::npos) continue;
      const std::string path = section.path + ".kind";
      test::Tables tables = test::base_tables();
      tables[section.path] = "kind = \"" + wrong + "\"";
      judge({path + " = " + wrong, text_of(tables), {path}, "*"});
      tables[section.path] = "kind = [\"" + name + "\"]";
      judge({path + " = [" + name + "]", text_of(tables), {path}});
    }
  }
  EXPECT_GT(num_cases_, 150u);
}

TEST_F(BrokenScenarios, OptionsOfLayers) {
  for (const std::string& layer : Registry::instance().names("layer")) {
    Options options = Registry::instance().default_options("layer", layer);
    Schema schema = options.schema();
    const auto with_layer = [&](const std::string& text) {
      test::Tables tables = test::base_tables();
      tables["model"] = "kind = \"neural_network\"\nlayers = ['dense(3)', '" + text + "', 'dense(classes)']";
      return text_of(tables);
    };
    const std::string wrong_layer = misspelt(layer);
    if (!wrong_layer.empty()) judge({"layer " + wrong_layer, with_layer(wrong_layer), {"model.layers"}, "*"});
    for (const Field& field : schema.fields()) {
      std::vector<BadValue> values = {{"string", "nosuchvalue"}, {"unclosed", "[3"}, {"nothing", ""}, {"nan", "nan"}};
      add_beyond(field.constraint(), field.type == "integer", values);
      if (field.type == "integer") values.push_back({"huge", "9223372036854775807"});
      for (const BadValue& value : values) {
        const std::string call = layer + "(" + field.name + "=" + value.text + ")";
        judge({"layer " + call, with_layer(call), {"model.layers"}});
      }
      const std::string wrong = misspelt(field.name);
      if (!wrong.empty()) judge({"layer " + layer + "(" + wrong + ")", with_layer(layer + "(" + wrong + "=1)"), {"model.layers"}, "*"});
    }
  }
  EXPECT_GT(num_cases_, 100u);
}

TEST_F(BrokenScenarios, Tables) {
  Scenario defaults;
  for (Section& section : sections_of(defaults)) {
    if (section.path.empty()) continue;
    const std::string path = section.path;
    const std::size_t dot = path.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot + 1), last = path.substr(dot + 1);
    test::Tables tables = test::base_tables();
    tables.erase(path);
    const std::string without = text_of(tables), base = text_of(test::base_tables());
    if (!misspelt(last).empty()) {
      const std::string wrong = parent + misspelt(last);
      judge({"table " + wrong, without + "\n[" + wrong + "]\n", {wrong}, "*"});
    }
    judge({"table " + path + " twice", without + "\n[" + path + "]\n[" + path + "]\n", {path}});
    judge({"table " + path + " as a list", without + "\n[[" + path + "]]\n", {path}});
    const std::string above = dot == std::string::npos ? "" : path.substr(0, dot);
    judge({"table " + path + " as a number", with_line(without, above, last, last + " = 3"), {path}});
    judge({"table " + path + " within model", base + "\n[model." + path + "]\n", {"model"}});
    judge({"table " + path + " within itself", base + "\n[" + path + "." + last + "]\nx = 1\n", {path}});
  }
  EXPECT_GT(num_cases_, 60u);
}

TEST_F(BrokenScenarios, Contradictions) {
  for (const BrokenCase& one : test::contradictions()) judge(one);
  EXPECT_GT(num_cases_, 100u);
}

// A few of them as a person meets them: the binary, its exit code, and the folder of results, which is not made.
TEST_F(BrokenScenarios, ThroughTheBinary) {
  std::size_t number = 0;
  const std::vector<BrokenCase> all = test::contradictions();
  for (std::size_t i = 0; i < all.size(); i += 9) {
    std::ofstream(folder_ / test::kBrokenFile) << all[i].text;
    for (const char* command : {"run", "sweep", "plan"}) {
      std::string line = std::string(FL_BINARY) + " " + command + " " + test::kBrokenFile + " --data " + folder_.string();
      if (std::string(command) != "plan") line += " --out results";
      for (const std::string& setting : all[i].settings) line += " --set '" + setting + "'";
      const int status = std::system((line + " > /dev/null 2> tmp/errors").c_str());
      EXPECT_EQ(WEXITSTATUS(status), 2) << all[i].name << ": " << command << "\n" << test::read_text(folder_ / "tmp/errors");
      EXPECT_FALSE(fs::exists(folder_ / "results")) << all[i].name << ": " << command;
      ++number;
    }
  }
  EXPECT_GT(number, 20u);
}

}  // namespace
}  // namespace fl
