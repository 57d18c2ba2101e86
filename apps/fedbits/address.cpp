#include "apps/fedbits/address.hpp"

#include <boost/asio/ip/address.hpp>
#include <charconv>

#include "fl_core/config/key_error.hpp"

namespace fl {

namespace {

bool is_loopback(const std::string& host) {
  boost::system::error_code error;
  const boost::asio::ip::address address = boost::asio::ip::make_address(host, error);
  return error ? host == "localhost" : address.is_loopback();
}

}  // namespace

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

void require_protection(const Address& address, const std::string& certs, int insecure) {
  if (!certs.empty() && insecure > 0)
    throw key_error("--insecure", "contradicts --certs: connections are either plain TCP or protected by TLS");
  if (!certs.empty() || insecure > 1) return;
  if (insecure == 0)
    throw key_error(
        "--certs",
        "names the folder of certificates that protects connections (fedbits certs init creates one); plain TCP on this machine "
        "needs --insecure instead");
  if (!is_loopback(address.host))
    throw key_error("--insecure", "plain TCP is for this machine alone (127.0.0.1, ::1 or localhost), not for '" + address.host +
                                      "': --certs protects connections to other machines; --insecure twice uses plain TCP all the same");
}

}  // namespace fl
