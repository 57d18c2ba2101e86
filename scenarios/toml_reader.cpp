#include "scenarios/toml_reader.hpp"

// toml++ states in assertions what it then checks and refuses, such as the first character of a table's name. With assertions a wrong file
// would end the process, and with NDEBUG some compilers take them for facts; here they are neither.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "scenarios/toml_depth.hpp"

namespace fl {
namespace {

constexpr std::uintmax_t kLargestFile_bytes = 16u << 20;

// Turns toml++ nodes into ours. A setting has one place for everything in it.
class Converter {
 public:
  Converter(std::string source, ProblemList& problems) : source_(std::move(source)), problems_(problems) {}
  explicit Converter(Place fixed, ProblemList& problems) : fixed_(std::move(fixed)), problems_(problems) {}

  Node convert(const toml::node& from, const std::string& path) {
    Node node;
    node.place = node.key_place = place_of(from.source());
    if (const toml::table* table = from.as_table()) {
      node.kind = Node::Kind::table;
      for (const auto& [key, value] : *table) add_member(node, key, value, path);
    } else if (const toml::array* array = from.as_array()) {
      node.kind = Node::Kind::array;
      for (const auto& item : *array) node.items.push_back(convert(item, path));
    } else {
      node.kind = Node::Kind::scalar;
      node.scalar = scalar(from, path, node.place);
    }
    return node;
  }

 private:
  [[nodiscard]] Place place_of(const toml::source_region& region) const {
    return fixed_ ? *fixed_ : Place{source_, region.begin.line, region.begin.column};
  }

  void add_member(Node& table, const toml::key& key, const toml::node& value, const std::string& path) {
    const std::string name(key.str());
    const std::string full = path.empty() ? name : path + "." + name;
    const Place key_place = place_of(key.source());
    if (!is_bare_key(name)) {
      const bool is_axis = path == "sweep" && is_scenario_key(name);
      problems_.add(key_place, full + ": a key consists of letters, digits, _ and -, is " + to_string(Value{name}) +
                                   (is_axis ? "; an axis is written [[sweep.axis]] with key = \"" + name + "\" and values = [...]" : ""));
      return;
    }
    Node& member = table.members[name];
    member = convert(value, full);
    member.key_place = key_place;
    if (member.place.line == 0) member.place = key_place;
  }

  Value scalar(const toml::node& from, const std::string& path, const Place& place) {
    if (const auto* b = from.as_boolean()) return Value{b->get()};
    if (const auto* i = from.as_integer()) return Value{i->get()};
    if (const auto* d = from.as_floating_point()) return Value{d->get()};
    if (const auto* s = from.as_string()) return Value{s->get()};
    problems_.add(place, path + ": no option takes a date or a time; quote it if it is a name");
    return Value{std::string{}};
  }

  std::string source_;
  std::optional<Place> fixed_;
  ProblemList& problems_;
};

// The line of a text, for error texts: without spaces around it, and not longer than people read.
std::string line_of(const std::string& text, std::uint32_t number) {
  constexpr std::size_t kLongest = 80;
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < number && begin != std::string::npos; ++line) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos || number == 0) return "";
  std::string line = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
  const auto is_shown = [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7F; };
  line.erase(line.begin(), std::find_if(line.begin(), line.end(), is_shown));
  line.erase(std::find_if(line.rbegin(), line.rend(), is_shown).base(), line.end());
  return line.size() <= kLongest ? line : line.substr(0, kLongest) + "...";
}

// The line of an error, or both it and the nearest one before that sets a key, where an error that begins there was found later.
std::string lines_of(const std::string& text, std::uint32_t number) {
  const std::string line = line_of(text, number);
  const auto sets_key = [](const std::string& one) { return one.find('=') != std::string::npos; };
  for (std::uint32_t before = number; !sets_key(line) && before-- > 1 && number - before < 5;)
    if (const std::string one = line_of(text, before); sets_key(one)) return line + " (after: " + one + ")";
  return line;
}

ConfigError not_toml(const Place& place, const std::string& why, const std::string& text) {
  const std::string line = lines_of(text, place.line);
  return ConfigError(std::vector<Problem>{{place.text(), "not valid TOML: " + why + (line.empty() ? "" : "; the line is: " + line)}});
}

std::string too_deep_text() {
  return "tables and lists lie more than " + std::to_string(kDeepestTree) + " levels deep in each other, which is the limit";
}

toml::table parse_or_throw(const std::string& text, const std::string& source) {
  if (const auto deep = find_too_deep(text, kDeepestTree)) throw not_toml({source, deep->line, deep->column}, too_deep_text(), text);
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw not_toml({source, at.line, at.column}, std::string(error.description()), text);
  }
}

bool is_bare_word(const std::string& text) { return text.find_first_of("\"'[]{}=\n\r") == std::string::npos; }

// The value behind the equals sign, or nothing and a problem.
std::optional<Node> setting_value(const std::string& key, const std::string& text, const Place& place, ProblemList& problems) {
  const bool has_text = text.find_first_not_of(" \t") != std::string::npos;
  if (!has_text || text.find_first_of("\n\r") != std::string::npos) {
    problems.add(place, key + (has_text ? ": a value is one line" : ": needs a value; an empty string is '" + key + "=\"\"'"));
    return std::nullopt;
  }
  if (find_too_deep(text, kDeepestTree)) {
    problems.add(place, key + ": " + too_deep_text());
    return std::nullopt;
  }
  Node word;
  word.kind = Node::Kind::scalar;
  word.scalar = Value{text.substr(text.find_first_not_of(" \t"), text.find_last_not_of(" \t") + 1 - text.find_first_not_of(" \t"))};
  word.place = word.key_place = place;
  try {
    const toml::table parsed = toml::parse("value = " + text);
    const toml::node* value = parsed.get("value");
    const bool is_date = value->is_date() || value->is_time() || value->is_date_time();
    return is_date ? word : Converter(place, problems).convert(*value, key);
  } catch (const toml::parse_error& error) {
    if (is_bare_word(text)) return word;
    problems.add(place, key + ": not a valid TOML value: " + std::string(error.description()));
    return std::nullopt;
  }
}

std::optional<Setting> read_setting(const std::string& text, int number, ProblemList& problems) {
  const Place place{"--set " + text, 0, 0, number};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    problems.add(place, "must have the form key=value, such as partition.alpha=0.1");
    return std::nullopt;
  }
  std::string key = text.substr(0, equals);
  while (!key.empty() && key.back() == ' ') key.pop_back();
  const std::vector<std::string> parts = split_path(key.empty() ? "." : key);
  if (parts.size() > kDeepestTree) {
    problems.add(place, too_deep_text());
    return std::nullopt;
  }
  for (const std::string& part : parts) {
    if (is_bare_key(part)) continue;
    problems.add(place, to_string(Value{key}) + " is not a key: must be names joined by dots, such as partition.alpha");
    return std::nullopt;
  }
  auto node = setting_value(key, text.substr(equals + 1), place, problems);
  if (!node) return std::nullopt;
  return Setting{std::move(key), std::move(*node)};
}

}  // namespace

std::string read_scenario_text(const std::filesystem::path& file) {
  const auto fail = [&file](const std::string& why, const char* at = "") {
    return ConfigError(std::vector<Problem>{{file.string() + at, why}});
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) throw fail("there is no such scenario file");
  if (std::filesystem::is_directory(status)) throw fail("is a folder; name the scenario file (*.toml) inside it");
  std::ifstream in(file, std::ios::binary);
  std::string text;
  char piece[1 << 16];
  while (in.read(piece, sizeof piece), in.gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLargestFile_bytes) throw fail("is larger than 16 MiB; this cannot be a scenario file");
  }
  if (!in.eof()) throw fail("cannot be read; check its permissions");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw fail("is empty; a scenario needs name, rounds, [data] and [model]", ":1:1");
  return text;
}

Node parse_toml(const std::string& text, const std::string& source, ProblemList& problems) {
  const toml::table table = parse_or_throw(text, source);
  Node root = Converter(source, problems).convert(table, "");
  root.place = root.key_place = Place{source, 1, 1};
  return root;
}

std::vector<Setting> apply_settings(Node& root, const std::vector<std::string>& settings, ProblemList& problems) {
  std::vector<Setting> applied;
  for (std::size_t s = 0; s < settings.size(); ++s) {
    auto setting = read_setting(settings[s], static_cast<int>(s) + 1, problems);
    if (!setting) continue;
    put(root, setting->key, setting->node, problems);
    applied.push_back(std::move(*setting));
  }
  return applied;
}

}  // namespace fl
