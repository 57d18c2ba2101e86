// Any text is read as a scenario file, up to the cells of its sweep, or rejected with a ConfigError that has a location. Nothing runs and
// no file is opened. The resolved text of a cell must be equal after it is read again. Lines that begin with "#set " are settings of the
// command line.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/file/sweep.hpp"
#include "tests/fuzz/target.hpp"

namespace {

constexpr std::size_t kMostChecked = 4;  // cells of a sweep whose texts are read again

std::vector<std::string> settings_in(const std::string& text) {
  const std::string mark = "#set ";
  std::vector<std::string> settings;
  for (std::size_t at = text.find(mark); at != std::string::npos && settings.size() < 4; at = text.find(mark, at + 1))
    settings.push_back(text.substr(at + mark.size(), text.find('\n', at) - at - mark.size()));
  return settings;
}

void scenario(std::span<const std::byte> bytes) {
  const std::string text(fl::fuzz::as_text(bytes));
  try {
    const std::vector<fl::Cell> cells = fl::parse_cells(text, "fuzz.toml", settings_in(text));
    fl::fuzz::require(!cells.empty(), "a sweep without cells");
    for (std::size_t i = 0; i < cells.size() && i < kMostChecked; ++i) {
      const std::string& resolved = cells[i].resolved_toml;
      try {
        fl::fuzz::require(fl::to_toml(fl::parse_scenario(resolved, "resolved.toml")) == resolved,
                          "a resolved scenario reads as another one");
      } catch (const fl::ConfigError&) {
        fl::fuzz::require(false, "a resolved scenario is refused");
      }
    }
  } catch (const fl::ConfigError& error) {
    for (const fl::Problem& problem : error.problems())
      fl::fuzz::require(problem.where.starts_with("fuzz.toml:") || problem.where.starts_with("--set "), "an error without a place");
  }
}

const fl::fuzz::Register kScenario("scenario", scenario);

}  // namespace
