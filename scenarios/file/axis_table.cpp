#include "scenarios/file/axis_table.hpp"

#include <algorithm>
#include <vector>

namespace fl {

const std::set<std::string>& keys_of_table(const std::string& path) {
  static const std::set<std::string> compressor = {"unit", "scope", "bucket", "exclude"}, partition = {"clients"},
                                     model = {"keep", "l2", "nonconvex", "weights"}, participation = {"absent", "absent_decay"},
                                     server = {"average", "statistics"}, none = {};
  if (path == "compressor.down" || path == "compressor.up" || path.starts_with("compressor.up.")) return compressor;
  return path == "partition"       ? partition
         : path == "model"         ? model
         : path == "participation" ? participation
         : path == "server"        ? server
                                   : none;
}

namespace {

const std::string* text_at(const Node& table, const std::string& key) {
  const Node* node = table.find(key);
  return node == nullptr ? nullptr : node->text();
}

bool names(const Node& table, const std::string& key) { return table.members.contains(key); }

// The value names another option that says the same.
bool names_alternative(const Node& value, const std::string& key) {
  static const std::vector<std::set<std::string>> alternatives = {{"k", "ratio"}};
  return std::ranges::any_of(alternatives, [&](const std::set<std::string>& group) {
    return group.contains(key) && std::ranges::any_of(group, [&](const std::string& other) { return names(value, other); });
  });
}

// Tables that hold tables and have no part of their own.
bool holds_parts(const std::string& path) { return path == "compressor" || path == "feedback"; }

}  // namespace

bool inherits(const Node& value, const Node& base, const std::string& path, const std::string& key) {
  if (value.kind != Node::Kind::table || base.kind != Node::Kind::table || !names(base, key)) return false;
  if (names(value, key)) return holds_parts(path);
  if (path == "data" && (names(value, "name") || names(value, "path") || names(value, "kind"))) return false;
  if (keys_of_table(path).contains(key)) {
    const std::string* scope = text_at(value, "scope");
    return key != "bucket" || scope == nullptr || *scope == "bucket";  // a bucket has a size under its own scope alone
  }
  const std::string *kind = text_at(value, "kind"), *base_kind = text_at(base, "kind");
  const bool is_same_kind = !names(value, "kind") || (kind != nullptr && base_kind != nullptr && *kind == *base_kind);
  return is_same_kind && !names_alternative(value, key);
}

Node with_inherited(Node value, const Node* base, const std::string& path) {
  if (base == nullptr) return value;
  Node merged = value;
  for (const auto& [key, member] : base->members) {
    if (!inherits(value, *base, path, key)) continue;
    const auto own = value.members.find(key);
    if (own == value.members.end())
      merged.members.emplace(key, member);
    else
      merged.members[key] = with_inherited(own->second, &member, join_path(path, key));
  }
  return merged;
}

}  // namespace fl
