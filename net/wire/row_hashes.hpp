// Hashes of what the rows of a peer's clients contain, as a server states them with a run. A peer with other rows is told by its own
// process which client they are of.
//
// Assignment has one hash for each client, in ascending order. Where a peer hosts more than kMostRowHashes clients, it has one for each
// group of clients that follow each other, so that its header stays within its limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "net/wire/client_ranges.hpp"

namespace fl::net {

inline constexpr std::size_t kMostRowHashes = 65'536;

// Returns what a server states for these clients; nothing if it knows no hashes. `of_all` = [N].
[[nodiscard]] FL_API std::vector<std::uint64_t> stated_hashes(std::span<const std::uint64_t> of_all,
                                                              const std::vector<ClientRange>& clients);

// Returns the clients whose rows are not those of the server, as 3 or 4-5, or "" if all are. `own` = one hash for each of the clients.
[[nodiscard]] FL_API std::string clients_with_other_rows(std::span<const std::uint64_t> own, std::span<const std::uint64_t> stated,
                                                         const std::vector<ClientRange>& clients);

}  // namespace fl::net
