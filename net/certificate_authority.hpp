// A private certificate authority for one federation: it certifies the server and the peers in one go, and revokes certificates.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "net/client_ranges.hpp"

namespace fl::net {

struct AuthorityRequest {
  std::filesystem::path folder{};  // is created; must be absent or empty
  std::uint32_t num_clients = 0;
  std::uint32_t per_peer = 1;                                        // clients of one certificate; the last one may have fewer
  int days = 90;                                                     // how long all certificates are valid
  std::vector<std::string> server{"localhost", "127.0.0.1", "::1"};  // names and addresses under which peers reach the server
  std::time_t now = std::time(nullptr);
};

struct CertificateInfo {
  std::string name;
  std::vector<ClientRange> clients;  // that it is for; empty = the authority's, the server's, or another one
  std::string serial;
  std::string valid_until;
  bool is_revoked = false, is_expired = false;
};

inline constexpr int kMostDays = 825;
inline constexpr std::uint32_t kMostCertificates = 100'000;

// Creates the folder with all keys and certificates, or nothing if that fails. Returns the names of the peers' certificates. Throws
// ConfigError for a request that cannot be met, also if the folder has content already.
FL_API std::vector<std::string> create_authority(const AuthorityRequest& request);

// Adds a certificate of the folder to its list of revoked certificates. Throws ConfigError if there is no such certificate, if it is the
// authority's, or if it is revoked already.
FL_API void revoke_certificate(const std::filesystem::path& folder, const std::string& name);

// Returns the folder's certificates, the authority and the server first.
[[nodiscard]] FL_API std::vector<CertificateInfo> list_certificates(const std::filesystem::path& folder);

}  // namespace fl::net
