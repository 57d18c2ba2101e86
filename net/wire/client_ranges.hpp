// Ranges of clients that a peer hosts, in the notation of users and of the protocol: "0-4,7".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl::net {

// A range of client ids; both ends are included.
struct ClientRange {
  std::uint32_t first = 0, last = 0;
  friend bool operator==(const ClientRange&, const ClientRange&) = default;
};

// Returns the ranges of "0-4,7". Throws ConfigError (key --clients) for an invalid text and for ranges that overlap or descend.
[[nodiscard]] FL_API std::vector<ClientRange> parse_client_ranges(const std::string& text);
[[nodiscard]] FL_API std::string to_text(const std::vector<ClientRange>& ranges);
// Returns the ranges that cover the sorted ids.
[[nodiscard]] FL_API std::vector<ClientRange> ranges_of(const std::vector<std::uint32_t>& ids);
[[nodiscard]] FL_API std::uint64_t num_clients(const std::vector<ClientRange>& ranges);

}  // namespace fl::net
