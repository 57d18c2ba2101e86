// Connections with TLS 1.3 and a certificate on both sides, from a folder of certificates (net/transport/tls_files.hpp).
//
// A handshake succeeds only if the other side has a certificate of the folder's authority, for its use (server or peer), that is valid now
// and not revoked. A peer also compares the server's names with the host that it connects to. Sessions are never resumed and no early data
// is accepted, so every connection proves all of this again. The list of revoked certificates is read again when its file changes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "net/transport/connection.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

// Reports that the other side has ended TLS with an alert, because it does not accept this side's certificate or name.
class FL_API TlsAlert : public ProtocolError {
 public:
  using ProtocolError::ProtocolError;
};

// Returns the transport of a server. Throws ConfigError (key --certs) if files are missing, damaged or do not belong together.
[[nodiscard]] FL_API std::shared_ptr<Transport> tls_server_transport(const std::filesystem::path& folder);

// Returns the transport of a peer that hosts `clients`. Without an identity it is the certificate for these clients, and for the fewest
// others. Throws ConfigError as the server's, and (key --identity) if no certificate is for all of these clients.
[[nodiscard]] FL_API std::shared_ptr<Transport> tls_peer_transport(const std::filesystem::path& folder, const std::string& identity,
                                                                   const std::vector<ClientRange>& clients);

}  // namespace fl::net
