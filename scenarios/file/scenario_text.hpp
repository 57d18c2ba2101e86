// The text of a scenario that is not in a file.
#pragma once

#include <filesystem>
#include <string>

namespace fl {

// `name` stands for the file in errors; relative paths are looked for in `folder`.
struct ScenarioText {
  std::string text, name;
  std::filesystem::path folder;
};

}  // namespace fl
