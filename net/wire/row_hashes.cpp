#include "net/wire/row_hashes.hpp"

#include <algorithm>

#include "fl_core/state/checksum.hpp"

namespace fl::net {

namespace {

std::size_t group_size(std::size_t clients) { return (clients + kMostRowHashes - 1) / kMostRowHashes; }

std::vector<std::uint64_t> in_groups(std::span<const std::uint64_t> hashes) {
  const std::size_t size = group_size(hashes.size());
  if (size < 2) return {hashes.begin(), hashes.end()};
  std::vector<std::uint64_t> groups;
  for (std::size_t first = 0; first < hashes.size(); first += size)
    groups.push_back(hash64_of(std::as_bytes(hashes.subspan(first, std::min(size, hashes.size() - first)))));
  return groups;
}

std::vector<std::uint32_t> ids_of(const std::vector<ClientRange>& clients) {
  std::vector<std::uint32_t> ids;
  for (const ClientRange& range : clients)
    for (std::uint64_t client = range.first; client <= range.last; ++client) ids.push_back(static_cast<std::uint32_t>(client));
  return ids;
}

}  // namespace

std::vector<std::uint64_t> stated_hashes(std::span<const std::uint64_t> of_all, const std::vector<ClientRange>& clients) {
  if (of_all.empty()) return {};
  std::vector<std::uint64_t> hashes;
  for (const std::uint32_t client : ids_of(clients)) hashes.push_back(of_all[client]);
  return in_groups(hashes);
}

std::string clients_with_other_rows(std::span<const std::uint64_t> own, std::span<const std::uint64_t> stated,
                                    const std::vector<ClientRange>& clients) {
  const std::vector<std::uint64_t> groups = in_groups(own);
  if (groups.size() != stated.size()) return to_text(clients);
  const std::vector<std::uint32_t> ids = ids_of(clients);
  const std::size_t size = group_size(ids.size());
  std::vector<std::uint32_t> others;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (groups[i / size] != stated[i / size]) others.push_back(ids[i]);
  return others.empty() ? "" : to_text(ranges_of(others));
}

}  // namespace fl::net
