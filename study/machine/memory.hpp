// Determines the memory that a sweep may use.
#pragma once

#include <cstdint>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Converts "8G", "500M", "1.5 GiB" to bytes; K, M, G, T are powers of 1024. Throws ConfigError that names `option`.
[[nodiscard]] FL_API std::uint64_t parse_bytes(const std::string& option, const std::string& text);

// Returns the bytes that the machine and the limits of this process's control groups leave to it, memory that it already uses included.
[[nodiscard]] FL_API std::uint64_t available_memory_bytes();

// Lets the process keep memory that it frees, up to some megabytes. A server and its peers free and take the frames of a round in every
// round; if the memory went back to the system in between, every page of it would be cleared again.
FL_API void keep_freed_memory();

}  // namespace fl
