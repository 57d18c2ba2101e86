#include "scenarios/file/config_tree.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "fl_core/config/meanings.hpp"

namespace fl {

std::string SourceLocation::text() const { return line == 0 ? source : source + ":" + std::to_string(line) + ":" + std::to_string(column); }

bool SourceLocation::operator<(const SourceLocation& other) const {
  return std::tie(setting, source, line, column) < std::tie(other.setting, other.source, other.line, other.column);
}

SourceLocation location_of_text(const std::string& text) {
  if (text.starts_with("--set ")) return {text, 0, 0, 1};
  const auto number_before = [&text](std::size_t end, std::uint32_t& number) {
    const std::size_t colon = end == 0 ? std::string::npos : text.rfind(':', end - 1);
    if (colon == std::string::npos) return std::string::npos;
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, text.data() + end, number);
    return error == std::errc{} && stop == text.data() + end ? colon : std::string::npos;
  };
  SourceLocation place;
  const std::size_t before_column = number_before(text.size(), place.column);
  const std::size_t before_line = before_column == std::string::npos ? before_column : number_before(before_column, place.line);
  if (before_line == std::string::npos) return {text};
  place.source = text.substr(0, before_line);
  return place;
}

const Node* Node::find(const std::string& path) const {
  const Node* node = this;
  for (const std::string& key : split_path(path)) {
    if (node->kind != Kind::table) return nullptr;
    const auto member = node->members.find(key);
    if (member == node->members.end()) return nullptr;
    node = &member->second;
  }
  return node;
}

Value Node::value() const {
  if (kind == Kind::scalar) return scalar;
  if (kind == Kind::table) {
    Value::Table table;
    for (const auto& [key, member] : members) table.emplace_back(key, member.value());
    Value result;
    result.data = std::move(table);
    return result;
  }
  Value::List list(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) list[i] = items[i].value();
  Value result;
  result.data = std::move(list);
  return result;
}

bool Node::holds_table() const {
  return kind == Kind::table || std::any_of(items.begin(), items.end(), [](const Node& n) { return n.holds_table(); });
}

std::string Node::shown() const {
  if (kind == Kind::table) return "a table";
  return holds_table() ? "a list of tables" : to_string(value());
}

void ProblemList::add(const SourceLocation& place, const std::string& message) {
  std::vector<std::string>& messages = found_[place];
  if (std::find(messages.begin(), messages.end(), message) != messages.end()) return;
  if (is_full()) {
    ++left_out_;
    if (messages.empty()) found_.erase(place);
    return;
  }
  messages.push_back(message);
  ++count_;
}

ConfigError ProblemList::error() const {
  std::vector<Problem> problems;
  for (const auto& [place, messages] : found_)
    for (const std::string& message : messages) problems.push_back({place.text(), message});
  if (left_out_ > 0)
    problems.push_back({found_.rbegin()->first.text(), std::to_string(left_out_) + " more problems are not shown; correct these first"});
  return ConfigError(std::move(problems));
}

void ProblemList::throw_if_any() const {
  if (!empty()) throw error();
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> keys;
  if (path.empty()) return keys;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    keys.push_back(path.substr(begin, dot - begin));
    begin = dot + 1;
  }
  keys.push_back(path.substr(begin));
  return keys;
}

bool is_bare_key(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string join_path(const std::string& path, const std::string& key) {
  return path.empty() || key.empty() ? path + key : path + "." + key;
}

std::string unknown_key_text(const std::string& path, const std::string& key, const std::vector<std::string>& known,
                             const std::string& hint) {
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  return join_path(path, key) + ": unknown key" + (hint.empty() ? did_you_mean(key, known, Sought::key) : hint) + " (known: " + all + ")";
}

void refuse_other_keys(const Node& table, const std::string& path, const std::vector<std::string>& known, ProblemList& problems) {
  for (const auto& [key, value] : table.members)
    if (std::find(known.begin(), known.end(), key) == known.end())
      problems.add(value.key_place, problems.is_full() ? "" : unknown_key_text(path, key, known));
}

bool is_scenario_key(const std::string& path) {
  const std::vector<std::string> parts = split_path(path);
  return !parts.empty() && parts.size() <= kDeepestTree && std::all_of(parts.begin(), parts.end(), is_bare_key) && parts[0] != "sweep";
}

void put(Node& root, const std::string& path, Node node, ProblemList& problems) {
  const SourceLocation place = node.place;
  Node* at = &root;
  std::string walked;
  for (const std::string& key : split_path(path)) {
    if (at->kind != Node::Kind::table) {
      problems.add(place, path + ": " + walked + " is not a table, so it has no \"" + key + "\"");
      return;
    }
    walked += (walked.empty() ? "" : ".") + key;
    const auto [member, is_new] = at->members.try_emplace(key);
    at = &member->second;
    if (is_new) at->place = at->key_place = place;
  }
  *at = std::move(node);
}

}  // namespace fl
