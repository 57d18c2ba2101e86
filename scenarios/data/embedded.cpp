#include "scenarios/data/embedded.hpp"

#if !defined(FL_EMBEDDED_MUSHROOMS)
#error "define FL_EMBEDDED_MUSHROOMS as the path of scenarios/data/embedded/mushrooms.gz, in quotes; see embedded.hpp"
#endif

__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    ".global fl_embedded_mushrooms_begin\n"
    ".hidden fl_embedded_mushrooms_begin\n"
    "fl_embedded_mushrooms_begin:\n"
    ".incbin \"" FL_EMBEDDED_MUSHROOMS
    "\"\n"
    ".global fl_embedded_mushrooms_end\n"
    ".hidden fl_embedded_mushrooms_end\n"
    "fl_embedded_mushrooms_end:\n"
    ".byte 0\n"
    ".previous\n");

// The assembler names these.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
__attribute__((visibility("hidden"))) extern const std::byte fl_embedded_mushrooms_begin[];
__attribute__((visibility("hidden"))) extern const std::byte fl_embedded_mushrooms_end[];
}
// NOLINTEND(readability-identifier-naming)

namespace fl {

std::span<const std::byte> embedded_mushrooms() { return {fl_embedded_mushrooms_begin, fl_embedded_mushrooms_end}; }

}  // namespace fl
