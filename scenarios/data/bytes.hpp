// The bytes of a data file, unpacked when it is gzip (told by its first two bytes, not by its name).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "fl_core/device.hpp"

namespace fl {

// Throws DataError: missing, a folder, unreadable, empty, or a gzip stream that is truncated or damaged.
[[nodiscard]] FL_API std::string read_data_file(const std::filesystem::path& file);

// The same for bytes in memory; `name` is what errors call them.
[[nodiscard]] FL_API std::string unpack_data(std::span<const std::byte> bytes, const std::string& name);

}  // namespace fl
