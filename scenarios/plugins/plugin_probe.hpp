// Tries a plug-in out in a process of its own before it is loaded: what it throws while it is loaded cannot be caught, nor can a crash.
//
// The process loads the file, makes each of its parts with default options (what a constructor throws for want of options is no matter),
// and then sends a random number back that it was started with. A plug-in that ends the process, with whatever exit code, or that is not
// done when the time is over, has not sent it. The process, and those that it started, are killed in any case.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns the time limit of a plug-in: 20 s, or the number in the variable FEDBITS_PLUGIN_SECONDS. Throws ConfigError for another text.
[[nodiscard]] FL_API std::chrono::milliseconds plugin_time();

// Throws ConfigError with the reason when the plug-in cannot be loaded, throws, crashes, ends the process or takes longer.
FL_API void probe_plugin(const std::filesystem::path& file, std::chrono::milliseconds time);

// Opens the shared object, which runs its registrations. Returns "", or why it could not.
[[nodiscard]] FL_API std::string open_plugin(const std::filesystem::path& file);

// Text from a plug-in for errors: cut, with "." in the place of control characters.
[[nodiscard]] FL_API std::string plain_text(std::string_view text);

}  // namespace fl
