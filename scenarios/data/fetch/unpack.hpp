// Files out of an archive: tar, packed with gzip or not, and zip. No other format or filter is read, and no program is started to read one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

struct ArchiveMember {
  std::string name;              // its whole name inside of the archive
  std::uint64_t most_bytes = 0;  // of its contents
};

// Returns the contents of `members`; the archive, which errors call `name`, is read once. Throws DataError: damaged, no such member, one
// that stands twice or is larger than its limit, and for any member that is neither file nor folder (links above all), or whose name is
// absolute or has a part "..". Throws ConfigError when fedbits was built without libarchive.
[[nodiscard]] FL_API std::vector<std::string> read_members(std::span<const std::byte> archive, const std::string& name,
                                                           const std::vector<ArchiveMember>& members);

}  // namespace fl
