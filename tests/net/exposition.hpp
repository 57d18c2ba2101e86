// Reads the text format of Prometheus as a scraper does, and fails for a text that breaks its rules.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace fl::test {

// Returns the values by their names with labels, as in `fedbits_bits_total{direction="up"}`.
inline std::map<std::string, double> read_exposition(const std::string& text) {
  static const std::regex kHelp(R"(# HELP ([a-zA-Z_][a-zA-Z0-9_]*) \S.*)"), kType(R"(# TYPE ([a-zA-Z_][a-zA-Z0-9_]*) (counter|gauge))"),
      kSample(R"re(([a-zA-Z_][a-zA-Z0-9_]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\\\|\\"|\\n)*",?)+\})? (NaN|[+-]Inf|[-+0-9.eE]+))re");
  std::map<std::string, double> values;
  std::set<std::string> families;
  std::string family, kind, awaited;
  EXPECT_TRUE(text.empty() || text.back() == '\n') << "the last line ends";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      family = match[1];
      EXPECT_TRUE(families.insert(family).second) << "a family is there twice: " << line;
      awaited = "type";
    } else if (std::regex_match(line, match, kType)) {
      EXPECT_EQ(match[1], family) << line;
      EXPECT_EQ(awaited, "type") << line;
      kind = match[2];
      EXPECT_EQ(kind == "counter", family.ends_with("_total")) << "counters, and nothing else, end in _total: " << line;
      awaited = "sample";
    } else if (std::regex_match(line, match, kSample)) {
      EXPECT_EQ(match[1], family) << line;
      EXPECT_EQ(awaited, "sample") << line;
      const std::string value = match[5];
      const double number = value == "NaN" ? std::nan("") : std::strtod(value.c_str(), nullptr);
      EXPECT_TRUE(kind != "counter" || number >= 0) << line;
      EXPECT_TRUE(values.emplace(match[1].str() + match[2].str(), number).second) << "a sample is there twice: " << line;
    } else {
      ADD_FAILURE() << "no line of the format: " << line;
    }
  }
  return values;
}

}  // namespace fl::test
