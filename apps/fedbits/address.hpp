// Addresses and the protection of connections on the command line.
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

// Throws ConfigError unless --certs protects connections, or --insecure allows plain ones: once for addresses of this machine, twice for
// all.
void require_protection(const Address& address, const std::string& certs, int insecure);

}  // namespace fl
