// Checks files that runs write, with one function per kind of file. Each function reads the whole file and trusts none of its contents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

struct Verified {
  std::string summary;                // "25 runs, 2025 rounds"
  std::vector<std::string> damage{};  // descriptions of the damage with its place; empty = the file is whole
};

// Check a file. A checkpoint is checked with the page file that it names, in folder `pages` ("" = same folder); the others ignore `pages`.
[[nodiscard]] FL_API Verified verify_store(const std::filesystem::path& file, const std::filesystem::path& pages = {});
[[nodiscard]] FL_API Verified verify_checkpoint(const std::filesystem::path& file, const std::filesystem::path& pages = {});
[[nodiscard]] FL_API Verified verify_page_file(const std::filesystem::path& file, const std::filesystem::path& pages = {});

// Returns the function for a file, selected by its name; nullptr if the file is not of a known kind.
using Verifier = Verified (*)(const std::filesystem::path& file, const std::filesystem::path& pages);
[[nodiscard]] FL_API Verifier verifier_of(const std::filesystem::path& file);

}  // namespace fl
