// The place and the checksum of each client's record in a page file. Checkpoints store this index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fl_core/state/archive.hpp"
#include "fl_core/state/page_file.hpp"

namespace fl {

struct FL_API PageIndex {
  static constexpr const char* kSection = "pages";
  std::string name{};  // of the file
  std::uint64_t record_bytes = 0;
  std::vector<std::uint32_t> clients{}, places{};
  std::vector<std::uint64_t> checksums{};
  void persist(Archive& archive);
  // Throws ArchiveError for an invalid index: a duplicate or unknown client, another record size, or a duplicate place.
  void validate(std::size_t num_clients, std::size_t record_bytes) const;
  [[nodiscard]] std::uint32_t num_places() const;
};

// Reads one client's record and compares its checksum. Throws ArchiveError if they differ.
FL_API void read_checked(const PageFile& file, const PageIndex& index, std::size_t entry, RecordParts parts);

// Reads all records that the index names and returns a sentence for each that is damaged or missing. The file is neither changed nor
// locked; a run in progress writes to other places of it. The memory use does not depend on the size of the index or the file.
[[nodiscard]] FL_API std::vector<std::string> damage_of(const PageIndex& index, const std::filesystem::path& folder);

}  // namespace fl
