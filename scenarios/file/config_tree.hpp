// A configuration as a tree of tables, free of any file format, in which every value knows where it was written.
//
// Scenario files, `--set` and the cells of a sweep all become such trees, so that one reader checks them all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fl_core/config/options.hpp"

namespace fl {

// Where something was written: "file:line:column", "file", or "--set a.b=c". Ordered as a person meets them: files before settings.
struct SourceLocation {
  std::string source;
  std::uint32_t line = 0, column = 0;  // from 1; 0 = unknown
  int setting = 0;                     // 0 = in a file; otherwise the number of the --set
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool operator<(const SourceLocation& other) const;
};
// Returns the location that text() wrote; of settings, the number is not known.
[[nodiscard]] SourceLocation location_of_text(const std::string& text);

struct Node {
  enum class Kind { scalar, array, table };
  Kind kind = Kind::table;
  Value scalar;                         // Kind::scalar
  std::vector<Node> items;              // Kind::array
  std::map<std::string, Node> members;  // Kind::table
  SourceLocation place;                 // of the value
  SourceLocation key_place;             // of the key, where it has one

  // Members by dotted path ("compressor.up"); null when there is none.
  [[nodiscard]] const Node* find(const std::string& path) const;
  // Returns the value for an option. Few options take tables (see holds_table and Field::takes_tables).
  [[nodiscard]] Value value() const;
  // The string of a scalar, or null.
  [[nodiscard]] const std::string* text() const { return std::get_if<std::string>(&scalar.data); }
  [[nodiscard]] bool holds_table() const;
  [[nodiscard]] std::string shown() const;  // for error texts: the value, or what it is made of
};

inline constexpr std::size_t kDeepestTree = 64;     // levels of tables and lists, those of dotted keys included
inline constexpr std::size_t kMostProblems = 1000;  // that one error tells

// Problems gathered from many places, each once, handed out in the order of their places.
class ProblemList {
 public:
  void add(const SourceLocation& place, const std::string& message);
  [[nodiscard]] bool empty() const { return found_.empty(); }
  [[nodiscard]] std::size_t size() const { return count_ + left_out_; }
  // Returns true when more problems would only be counted.
  [[nodiscard]] bool is_full() const { return count_ >= kMostProblems; }
  [[nodiscard]] ConfigError error() const;
  void throw_if_any() const;  // ConfigError

 private:
  std::map<SourceLocation, std::vector<std::string>> found_;
  std::size_t count_ = 0, left_out_ = 0;
};

[[nodiscard]] std::vector<std::string> split_path(const std::string& path);  // "a.b" -> a, b
[[nodiscard]] bool is_bare_key(const std::string& key);                      // letters, digits, _ and -, at least one

[[nodiscard]] std::string join_path(const std::string& path, const std::string& key);

// Returns "a.b: unknown key; did you mean "c"? (known: c, d)". `hint` replaces the question: it begins with "; ".
[[nodiscard]] std::string unknown_key_text(const std::string& path, const std::string& key, const std::vector<std::string>& known,
                                           const std::string& hint = "");

// Adds a problem for each key of the table that is not known.
void refuse_other_keys(const Node& table, const std::string& path, const std::vector<std::string>& known, ProblemList& problems);

// Returns true for the path of a scenario's key, such as "partition.alpha", of at most kDeepestTree names; [sweep] is the file's own
// structure.
[[nodiscard]] bool is_scenario_key(const std::string& path);

// Puts `node` at the dotted path, making the tables on the way; a table that is already there is replaced, not merged.
// Refused, with a problem at the node's place, when something on the way is not a table.
void put(Node& root, const std::string& path, Node node, ProblemList& problems);

}  // namespace fl
