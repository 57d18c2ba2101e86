// TOML text and command-line settings as configuration trees.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/file/config_tree.hpp"

namespace fl {

// A whole file's text. Throws ConfigError when the file is missing, unreadable, empty or far larger than any scenario.
[[nodiscard]] std::string read_scenario_text(const std::filesystem::path& file);

// Parses TOML; `source` is the file's name in error texts. Throws ConfigError with line and column of a syntax error. Values that no
// option can take (dates) and keys that no path can name (dots, spaces) are added to `problems`.
[[nodiscard]] Node parse_toml(const std::string& text, const std::string& source, ProblemList& problems);

// A `--set a.b=c`: the value is read as TOML (numbers, strings, lists, inline tables), a bare word as a string.
struct Setting {
  std::string key;
  Node node;
};

// Reads settings and puts them into the tree in their order, later ones over earlier ones; returns those that could be read.
std::vector<Setting> apply_settings(Node& root, const std::vector<std::string>& settings, ProblemList& problems);

}  // namespace fl
