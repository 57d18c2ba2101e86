// Defines and judges broken scenarios for tests/properties/broken_scenarios_test.cpp.
#pragma once

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/sweep/sweep_runner.hpp"

namespace fl::test {

inline const std::string kBrokenFile = "broken.toml";

// A scenario file that must be rejected.
struct BrokenCase {
  std::string name;                     // for people
  std::string text;                     // of the file
  std::vector<std::string> keys;        // the error names one of them
  std::string near{};                   // the name that the error suggests; "*" = any
  std::vector<std::string> settings{};  // --set
};

// A scenario as tables: "" holds the keys above the first table. Tables are written in alphabetical order.
using Tables = std::map<std::string, std::string>;

inline std::string text_of(const Tables& tables) {
  std::string text;
  for (const auto& [section, body] : tables) text += (section.empty() ? "" : "\n[" + section + "]\n") + body + "\n";
  return text;
}

// Returns the text of a resolved scenario with the line of one key replaced, or added to its table, which is added if it is missing.
inline std::string with_line(const std::string& text, const std::string& section, const std::string& key, const std::string& line) {
  std::string result, current;
  bool is_done = false;
  std::size_t begin = 0;
  const auto add = [&] {
    result += line + "\n";
    is_done = true;
  };
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    begin = end + 1;
    const bool is_header = one.starts_with("[");
    if (is_header && current == section && !is_done) add();
    if (is_header) current = one.substr(1, one.size() - 2);
    if (current == section && one.starts_with(key + " = ")) {
      if (!is_done) add();
      continue;
    }
    result += one + "\n";
  }
  if (!is_done && current != section) result += "[" + section + "]\n";
  if (!is_done) add();
  return result;
}

// The verdict on a case; every condition that does not hold has a line in `faults`.
struct BrokenVerdict {
  std::string error;                // the whole text
  std::vector<std::string> faults;  // empty = the case is rejected as required
  double seconds = 0;               // of the processor, so that a busy machine does not count
};

class BrokenJudge {
 public:
  // `folder` holds the files that scenarios name, is the working folder, and must not change.
  explicit BrokenJudge(std::filesystem::path folder) : folder_(std::move(folder)), catalog_(folder_.string()), files_(list_files()) {}

  BrokenVerdict judge(const BrokenCase& one) const {
    BrokenVerdict verdict;
    std::vector<std::string> problems;
    const std::clock_t started = std::clock();
    int code = 0;
    try {
      std::vector<Cell> cells = parse_cells(one.text, kBrokenFile, one.settings);
      for (Cell& cell : cells) cell.folder = folder_;
      SweepRunner(std::move(cells), catalog_, {}).check();
    } catch (const ConfigError& error) {  // the binary's exit codes: apps/fedbits/main.cpp
      code = 2;
      for (const Problem& problem : error.problems()) problems.push_back(problem.where + ": " + problem.message);
    } catch (const DataError& error) {
      code = 2;
      problems.emplace_back(error.what());
    } catch (const std::exception& error) {
      code = 1;
      problems.emplace_back(error.what());
    }
    verdict.seconds = static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
    for (const std::string& problem : problems) verdict.error += (verdict.error.empty() ? "" : "\n") + problem;
    if (code == 0) verdict.faults.emplace_back("it is accepted");
    if (code == 1) verdict.faults.emplace_back("its exit code would be 1");
    if (code == 2) look_at(one, problems, verdict);
    if (verdict.seconds > kWatchdog_s) verdict.faults.push_back("it takes " + std::to_string(verdict.seconds) + " s");
    if (list_files() != files_) verdict.faults.emplace_back("it leaves files");
    return verdict;
  }

 private:
  static constexpr double kWatchdog_s = 20;  // for a rejection that takes milliseconds

  static void look_at(const BrokenCase& one, const std::vector<std::string>& problems, BrokenVerdict& verdict) {
    static const std::regex place("^" + kBrokenFile + ":[1-9][0-9]*:[1-9][0-9]*: ");
    for (const std::string& problem : problems) {
      const bool is_set = !one.settings.empty() && problem.starts_with("--set ");
      if (!is_set && !std::regex_search(problem.substr(0, 100), place)) verdict.faults.push_back("no place: " + problem);
    }
    const auto names = [&](const std::string& key) { return verdict.error.find(key) != std::string::npos; };
    if (std::none_of(one.keys.begin(), one.keys.end(), names)) verdict.faults.push_back("it does not name " + one.keys.front());
    const std::string offer = one.near == "*" ? "did you mean \"" : "did you mean \"" + one.near + "\"";
    if (!one.near.empty() && verdict.error.find(offer) == std::string::npos) verdict.faults.push_back("no " + offer);
  }

  [[nodiscard]] std::vector<std::string> list_files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    return files;
  }

  std::filesystem::path folder_;
  DataCatalog catalog_;
  std::vector<std::string> files_;
};

}  // namespace fl::test
