// Parses HOST:PORT on the command line.
#pragma once

#include <cstdint>
#include <string>

namespace fl {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

// Returns the parts of HOST:PORT, or of [HOST]:PORT for a host with colons. Throws ConfigError about `option`.
[[nodiscard]] Address parse_address(const std::string& option, const std::string& text);

// Throws ConfigError unless --insecure allows plain connections and the address is on this machine.
void require_loopback(const Address& address, bool insecure);

}  // namespace fl
