// Data files below a folder, each plain or with .gz appended.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

[[nodiscard]] FL_API bool is_file(const std::filesystem::path& path);
[[nodiscard]] FL_API bool is_folder(const std::filesystem::path& path);

// The plain or the packed file, when either is there.
[[nodiscard]] FL_API std::optional<std::filesystem::path> find_plain_or_packed(const std::filesystem::path& path);

// The same; DataError "FILE: this file of the data set is missing" when neither is.
[[nodiscard]] FL_API std::filesystem::path need_plain_or_packed(const std::filesystem::path& path);

// The file in `folder` whose name, without .gz, ends with `ending`; the first in the alphabet.
[[nodiscard]] FL_API std::optional<std::filesystem::path> find_ending(const std::filesystem::path& folder, const std::string& ending);

// The same; DataError "FOLDER: the file *ENDING of this data set is missing" when there is none, and when there are two of different names:
// the reader does not choose between them.
[[nodiscard]] FL_API std::filesystem::path need_ending(const std::filesystem::path& folder, const std::string& ending);

// Returns the places as an error lists them: "a/x.csv, x.csv".
[[nodiscard]] FL_API std::string text_of_places(const std::vector<std::filesystem::path>& places);

}  // namespace fl
