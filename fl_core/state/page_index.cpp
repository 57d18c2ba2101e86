#include "fl_core/state/page_index.hpp"

#include <algorithm>
#include <limits>

#include "fl_core/config/regular_file.hpp"
#include "fl_core/state/wide_hash.hpp"

namespace fl {
namespace {

constexpr std::uint32_t kNoPlace = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void PageIndex::persist(Archive& archive) {
  archive.section(kSection);
  archive.text(name);
  archive.value(record_bytes);
  archive.list(clients);
  archive.list(places);
  archive.list(checksums);
}

std::uint32_t PageIndex::num_places() const { return places.empty() ? 0 : *std::ranges::max_element(places) + 1; }

void PageIndex::validate(std::size_t num_clients, std::size_t expected_bytes) const {
  const auto refuse = [](const std::string& what) { throw ArchiveError("in 'pages': " + what); };
  if (record_bytes != expected_bytes)
    refuse("a client's state has " + std::to_string(record_bytes) + " bytes where this run has " + std::to_string(expected_bytes));
  if (places.size() != clients.size() || checksums.size() != clients.size()) refuse("the lists differ in length");
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (clients[i] >= num_clients || (i > 0 && clients[i] <= clients[i - 1]))
      refuse("client " + std::to_string(clients[i]) + " is out of order");
  std::vector<std::uint32_t> sorted = places;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end() || (!sorted.empty() && sorted.back() == kNoPlace))
    refuse("a place is taken twice");
}

void read_checked(const PageFile& file, const PageIndex& index, std::size_t entry, RecordParts parts) {
  if (file.read(index.places[entry], parts) != index.checksums[entry])
    throw ArchiveError("its state file is damaged: " + file.text_of(index.places[entry]) + ", the state of client " +
                       std::to_string(index.clients[entry]) + ", does not match its checksum");
}

std::vector<std::string> damage_of(const PageIndex& index, const std::filesystem::path& folder) {
  constexpr std::size_t kPiece = std::size_t{1} << 16, kMostSentences = 20;
  std::vector<std::string> damage;
  try {
    if (owner_of_page_file(index.name).empty()) return {"it names '" + index.name + "', which is no state file"};
    const RegularFile file = open_regular_file(folder / std::filesystem::path(index.name).filename());
    const PageFile layout({}, index.record_bytes);
    std::vector<std::byte> piece(kPiece);
    std::size_t num_damaged = 0;
    for (std::size_t i = 0; i < index.clients.size(); ++i) {
      const std::uint64_t begin = layout.offset_of(index.places[i]);
      const bool is_there = index.record_bytes <= file.size() && begin <= file.size() - index.record_bytes;
      WideHash hash;
      for (std::uint64_t done = 0; is_there && done < index.record_bytes;) {
        const std::span<std::byte> part = std::span(piece).first(std::min<std::uint64_t>(kPiece, index.record_bytes - done));
        file.read(begin + done, part);
        hash.add(part);
        done += part.size();
      }
      if (is_there && hash.value() == index.checksums[i]) continue;
      if (++num_damaged > kMostSentences) continue;
      damage.push_back(
          file.path().string() + ", bytes " + std::to_string(begin) + " to " + std::to_string(begin + index.record_bytes - 1) +
          ", the state of client " + std::to_string(index.clients[i]) +
          (is_there ? ": does not match its checksum" : ": the file ends before, after " + std::to_string(file.size()) + " bytes"));
    }
    if (num_damaged > kMostSentences) damage.push_back("and " + std::to_string(num_damaged - kMostSentences) + " more records");
  } catch (const FileError& error) {
    damage.push_back(std::string(error.what()) + " (--state-folder names the folder where it lies)");
  }
  return damage;
}

}  // namespace fl
