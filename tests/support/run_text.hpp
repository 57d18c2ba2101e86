// Runs scenario texts inside a test, as the command line would.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "scenarios/file/sweep.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl::test {

// Runs every cell of a scenario text, in order.
inline std::vector<RunResult> run_text(const std::string& text, const MachineOptions& machine = {}) {
  const char* data = std::getenv("FEDBITS_DATA");
  CellRunner runner(DataCatalog(data == nullptr ? "" : data), machine);
  std::vector<RunResult> results;
  for (const Cell& cell : parse_cells(text, "test.toml")) results.push_back(runner.run(cell, {}));
  return results;
}

}  // namespace fl::test
