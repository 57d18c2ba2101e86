#include "scenarios/file/scenario_reader.hpp"

#include <algorithm>

#include "fl_core/config/meanings.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/file/section_fields.hpp"
#include "scenarios/file/toml_reader.hpp"

namespace fl {
namespace {

// The options of [compressor.up]'s operator that are tables themselves.
std::vector<std::string> table_options(const Node& up) {
  const Node* kind = up.find("kind");
  const auto* name = kind == nullptr ? nullptr : std::get_if<std::string>(&kind->scalar.data);
  std::vector<std::string> names;
  if (name == nullptr || !Registry::instance().contains("compressor", *name)) return names;
  Options options = Registry::instance().default_options("compressor", *name);
  Schema schema = options.schema();
  for (const Field& field : schema.fields())
    if (field.takes_tables) names.push_back(field.name);
  return names;
}

// Any other table below [compressor.up] is a channel of its own.
void find_channels(const Node& root, Scenario& scenario) {
  const Node* up = root.find("compressor.up");
  if (up == nullptr) return;
  const std::vector<std::string> options = table_options(*up);
  for (const auto& [key, member] : up->members)
    if (member.kind == Node::Kind::table && std::find(options.begin(), options.end(), key) == options.end()) scenario.up.try_emplace(key);
}

bool set_field(Field& field, const Node& node, const std::string& path, ProblemList& problems) {
  const auto why =
      node.holds_table() && !field.takes_tables ? "must be a value (" + field.type + "), is " + node.shown() : field.assign(node.value());
  if (why) problems.add(node.place, path + ": " + *why);
  return !why;
}

// Returns "; "epochs" goes with kind = "sgd", "scaffold"" for a key that other parts of the role have, under this name or as a word of
// the field; "" if there are none, or the word means a key of another table.
std::string kinds_with(const Section& section, const std::string& key, const std::vector<std::string>& known) {
  constexpr std::size_t kMostKinds = 12;
  const std::vector<Meaning> meanings = meanings_of(key);
  const std::string table = table_of_role(section.role);  // the channels and the downlink have the keys of [compressor.up]
  std::string name = key;
  for (const Meaning& meaning : meanings)
    if (meaning.table == table && meaning.value.empty() && !meaning.key.empty()) name = meaning.key;
  if (!meanings.empty() && name == key && meanings.front().table != table) return "";
  if (std::find(known.begin(), known.end(), name) != known.end()) return "";
  std::string kinds;
  std::size_t count = 0;
  for (const std::string& part : Registry::instance().names(section.role)) {
    Options options = Registry::instance().default_options(section.role, part);
    Schema schema = options.schema();
    if (schema.find(name) == nullptr) continue;
    if (++count <= kMostKinds) kinds += (kinds.empty() ? "\"" : ", \"") + part + "\"";
  }
  if (count == 0) return "";
  return "; \"" + name + "\" goes with kind = " + kinds + (count > kMostKinds ? " and others" : "");
}

// Returns the way out for a value in the place of a table: "; write local = { kind = "sgd" }".
std::string table_hint(const Section& section, const Node& node) {
  if (node.kind != Node::Kind::scalar) return "";
  if (std::string hint = did_you_mean(section.path, {}, Sought::key); !hint.empty()) return hint;
  const bool names_part = section.part != nullptr && node.text() != nullptr;
  if (!names_part) return "";
  return "; write " + section.path + " = { kind = " + node.shown() + " }, and as a value of an axis { label = " + node.shown() +
         ", kind = " + node.shown() + " }";
}

class Reader {
 public:
  Reader(const Node& root, Scenario& scenario, ProblemList& problems)
      : root_(root), problems_(problems), paths_(section_paths(scenario)), sections_(sections_of(scenario)) {}
  Reader(const Node& root, const std::set<std::string>& changed, Scenario& scenario, ProblemList& problems)
      : root_(root), problems_(problems), paths_(section_paths(scenario)), sections_(sections_of(scenario, changed)) {}

  void run() {
    for (Section& section : sections_) read(section);
  }

 private:
  void read(Section& section) {
    static const Node kEmptyTable;
    const Node* found = root_.find(section.path);
    Node spelled_out;
    if (found != nullptr && found->kind == Node::Kind::scalar && !section.shorthand.empty()) {
      spelled_out.place = found->place;
      spelled_out.key_place = found->key_place;
      spelled_out.members.emplace(section.shorthand, *found);
      found = &spelled_out;
    }
    if (found != nullptr && found->kind != Node::Kind::table) {
      problems_.add(found->place, section.path + ": must be a table, is " + found->shown() + table_hint(section, *found));
      return;
    }
    const Node& table = found == nullptr ? kEmptyTable : *found;
    const SourceLocation& place = found == nullptr ? root_.place : found->place;
    const bool part_is_known = section.part == nullptr || read_kind(section, table, place);
    Schema own = section.part != nullptr && part_is_known ? section.part->options.schema() : Schema();
    bool is_valid = part_is_known;
    for (Schema* schema : {&section.keys, &own})
      for (Field& field : schema->fields()) is_valid = read_key(field, section, table, place) && is_valid;
    if (part_is_known) refuse_unknown_keys(section, own, table);
    if (is_valid) validate(section, table, place);
  }

  // The part's name and its default options. False, with a problem, when there is no such part.
  bool read_kind(Section& section, const Node& table, const SourceLocation& place) {
    Part& part = *section.part;
    const std::string path = join_path(section.path, "kind");
    const auto member = table.members.find("kind");
    Schema schema;
    if (member != table.members.end() && !set_field(schema.field("kind", part.kind, ""), member->second, path, problems_)) return false;
    if (part.kind.empty() && section.presence == Section::Presence::optional) return true;
    try {
      if (part.kind.empty()) throw ConfigError(missing_text("the name of a part, one of ") + known_parts(section.role));
      part = default_part(section.role, part.kind);
    } catch (const ConfigError& error) {
      problems_.add(member == table.members.end() ? place : member->second.place, path + ": " + error.what());
      return false;
    }
    check_no_shared_keys(part, section);
    drop_idle_keys(section);
    return true;
  }

  static std::string known_parts(const std::string& role) {
    std::string all;
    for (const std::string& name : Registry::instance().names(role)) all += (all.empty() ? "" : ", ") + name;
    return all;
  }

  bool read_key(Field& field, const Section& section, const Node& table, const SourceLocation& place) {
    const std::string path = join_path(section.path, field.name);
    const auto member = table.members.find(field.name);
    if (member != table.members.end()) return set_field(field, member->second, path, problems_);
    if (field.is_required) problems_.add(place, path + ": " + missing_text(field.doc));
    return !field.is_required;
  }

  void refuse_unknown_keys(Section& section, Schema& own, const Node& table) {
    std::vector<std::string> known;
    if (section.part != nullptr) known.emplace_back("kind");
    for (Schema* schema : {&own, &section.keys})
      for (const Field& field : schema->fields()) known.push_back(field.name);
    for (const std::string& child : children_of(section.path)) known.push_back(child);
    if (section.path.empty()) known.emplace_back("sweep");
    for (const auto& [key, value] : table.members) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string hint = problems_.is_full() || section.part == nullptr ? "" : kinds_with(section, key, known);
      problems_.add(value.key_place, problems_.is_full() ? "" : unknown_key_text(section.path, key, known, hint));
    }
  }

  // The tables directly below a table: "compressor" has up and down.
  [[nodiscard]] std::vector<std::string> children_of(const std::string& path) const {
    const std::size_t depth = split_path(path).size();
    std::vector<std::string> children;
    for (const std::string& inner : paths_) {
      const std::vector<std::string> keys = split_path(inner);
      if (keys.size() == depth + 1 && inner == join_path(path, keys.back())) children.push_back(keys.back());
    }
    return children;
  }

  void validate(const Section& section, const Node& table, const SourceLocation& place) {
    Problems found;
    if (section.validate) section.validate(found);
    if (section.part != nullptr) section.part->options.validate(found);
    for (const Problem& problem : found) {
      const auto member = table.members.find(problem.where);
      const std::string path = join_path(section.path, problem.where);
      problems_.add(member == table.members.end() ? place : member->second.place, (path.empty() ? "" : path + ": ") + problem.message);
    }
  }

  const Node& root_;
  ProblemList& problems_;
  std::vector<std::string> paths_;  // of all tables
  std::vector<Section> sections_;   // that are read
};

// `seed` and all of [seeds] together: one of them would be ignored in silence.
void refuse_idle_seed(const Node& root, ProblemList& problems) {
  const Node* seed = root.find("seed");
  const Node* seeds = root.find("seeds");
  if (seed != nullptr && seeds != nullptr && seeds->members.size() >= 4)
    problems.add(seed->key_place, "seed: has no effect, because [seeds] sets all four; drop one of them");
}

// A number that the scenario does not have in this build says that another one made its results.
void refuse_other_results(const Node& root, const Scenario& scenario, ProblemList& problems) {
  const Node* key = root.find(kResultsVersionKey);
  if (key == nullptr || !problems.empty()) return;
  const Value value = key->value();
  const auto* version = std::get_if<std::int64_t>(&value.data);
  const std::int64_t own = results_version_for(to_toml(scenario));
  if (version != nullptr && *version != own)
    problems.add(key->key_place, std::string(kResultsVersionKey) + ": " + other_results_text(*version, own));
}

}  // namespace

Scenario read_scenario(const Node& root, ProblemList& problems) {
  Scenario scenario;
  find_channels(root, scenario);
  Reader(root, scenario, problems).run();
  refuse_idle_seed(root, problems);
  refuse_other_results(root, scenario, problems);
  return scenario;
}

void read_tables(const Node& root, const std::set<std::string>& changed, Scenario& scenario, ProblemList& problems) {
  Reader(root, changed, scenario, problems).run();
}

namespace {

// Calls f(path, field) for every key.
template <class F>
void for_each_key(const Scenario& scenario, const F& f) {
  Scenario copy = scenario;
  for (Section& section : sections_of(copy)) {
    drop_idle_keys(section);
    Schema own = section.part == nullptr ? Schema() : section.part->options.schema();
    for (Schema* schema : {&section.keys, &own})
      for (const Field& field : schema->fields()) f(join_path(section.path, field.name), field);
  }
}

std::string type_of(const Value& value) {
  if (std::holds_alternative<std::int64_t>(value.data)) return "integer";
  return std::holds_alternative<double>(value.data) ? "number" : "value";
}

}  // namespace

std::vector<std::string> keys_of(const Scenario& scenario) {
  std::vector<std::string> keys;
  for_each_key(scenario, [&keys](const std::string& path, const Field&) { keys.push_back(path); });
  return keys;
}

std::optional<std::string> type_of_key(const Scenario& scenario, const std::string& path) {
  std::optional<std::string> type;
  bool is_inside_part = false;
  for_each_key(scenario, [&](const std::string& key, const Field& field) {
    if (key == path) type = field.type;
    is_inside_part = is_inside_part || (field.takes_tables && path.starts_with(key + "."));
  });
  if (type || !is_inside_part) return type;
  ProblemList ignored;
  const Node root = parse_toml(to_toml(scenario), "", ignored);
  const Node* node = root.find(path);
  return node == nullptr ? std::nullopt : std::optional(type_of(node->value()));
}

void check_no_shared_keys(const Part& part, Section& section) {
  Options options = part.options;
  Schema own = options.schema();
  const auto& idle = section.only_without_part;
  for (const Field& field : own.fields()) {
    if (std::find(idle.begin(), idle.end(), field.name) != idle.end()) continue;
    if (field.name == "kind" || section.keys.find(field.name) != nullptr)
      throw Error(section.role + " \"" + part.kind + "\": its option \"" + field.name + "\" is also a key of [" + section.path +
                  "]; rename the option");
  }
}

Scenario parse_scenario(const std::string& text, const std::string& source) {
  ProblemList problems;
  const Node root = parse_toml(text, source, problems);
  Scenario scenario = read_scenario(root, problems);
  problems.throw_if_any();
  return scenario;
}

}  // namespace fl
