#include "apps/fedbits/address.hpp"

#include <charconv>

#include "fl_core/config/key_error.hpp"

namespace fl {

Address parse_address(const std::string& option, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  const char* end = text.data() + text.size();
  const char* digits = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto [read, error] = std::from_chars(digits, end, address.port);
  if (colon == std::string::npos || colon == 0 || error != std::errc() || read != end)
    throw key_error(option, "must be HOST:PORT as in 127.0.0.1:7000, is '" + text + "'");
  address.host = text.substr(0, colon);
  if (address.host.front() == '[' && address.host.back() == ']') address.host = address.host.substr(1, address.host.size() - 2);
  return address;
}

void require_loopback(const Address& address, bool insecure) {
  if (!insecure)
    throw key_error("--insecure", "connections are plain TCP in this version: say --insecure to use them, on this machine alone");
  if (address.host != "127.0.0.1" && address.host != "::1" && address.host != "localhost")
    throw key_error("--insecure", "plain TCP is for this machine alone: 127.0.0.1, ::1 or localhost, not '" + address.host + "'");
}

}  // namespace fl
