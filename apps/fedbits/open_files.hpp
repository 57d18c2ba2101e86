// The number of files and connections that this process may have open.
#pragma once

#include <cstdint>

namespace fl {

// Raises the limit to the most that the system allows this process, and returns it.
std::uint64_t raise_open_files();

}  // namespace fl
