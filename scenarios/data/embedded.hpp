// The data set inside the binary, so that the first run needs no download: mushrooms, as gzip (see embedded/README.md).
//
// The file is taken in by the assembler. embedded.cpp is compiled with FL_EMBEDDED_MUSHROOMS defined as a string literal, the absolute
// path of scenarios/data/embedded/mushrooms.gz:
//   set_source_files_properties(embedded.cpp PROPERTIES COMPILE_DEFINITIONS "FL_EMBEDDED_MUSHROOMS=\"${file}\"" OBJECT_DEPENDS "${file}")
#pragma once

#include <cstddef>
#include <span>

#include "fl_core/config/device.hpp"

namespace fl {

[[nodiscard]] FL_API std::span<const std::byte> embedded_mushrooms();

}  // namespace fl
