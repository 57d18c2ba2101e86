// The memory that a sweep may take.
#pragma once

#include <cstdint>
#include <string>

namespace fl {

// "8G", "500M", "1.5 GiB" as bytes: K, M, G, T in powers of 1024. Throws ConfigError that names `option`.
[[nodiscard]] std::uint64_t parse_bytes(const std::string& option, const std::string& text);

// What this machine and the limits of this process's control groups leave to it now, what it has already included.
[[nodiscard]] std::uint64_t available_memory_bytes();

}  // namespace fl
