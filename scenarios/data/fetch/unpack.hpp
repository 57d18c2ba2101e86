// Files out of an archive (tar, zip, compressed or not).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fl_core/device.hpp"

namespace fl {

// The contents of `members`, each by its whole name inside of the archive, which is read once. Throws DataError: damaged, or no such
// member; ConfigError when fedbits was built without libarchive.
[[nodiscard]] FL_API std::vector<std::string> read_members(const std::filesystem::path& archive, const std::vector<std::string>& members);

}  // namespace fl
