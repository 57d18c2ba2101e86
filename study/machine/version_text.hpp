// The answer to --version: the version, then what this program was built for and with.
#pragma once

#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns the instruction set of the build: "x86-64-v3", or with FL_NATIVE=ON the processor, "icelake-server (native)".
[[nodiscard]] FL_API std::string build_level();

// Returns the compiler with its version: "gcc 12.2.0".
[[nodiscard]] FL_API std::string build_compiler();

// Returns two lines: "fedbits 0.1.0", "built for x86-64-v3 with gcc 12.2.0".
[[nodiscard]] FL_API std::string version_text();

}  // namespace fl
