// A private certificate authority for one federation: it certifies the server and the peers in one go, renews certificates and revokes
// them.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "net/wire/client_ranges.hpp"

namespace fl::net {

inline constexpr int kUsualDays = 90, kMostDays = 825;  // of validity; an authority's is kMostDays

struct AuthorityRequest {
  std::filesystem::path folder{};  // is created; must be absent or empty
  std::uint32_t num_clients = 0;
  std::uint32_t per_peer = 1;                                        // clients of one certificate; the last one may have fewer
  int days = kUsualDays;                                             // how long all certificates but the authority's are valid
  std::vector<std::string> server{"localhost", "127.0.0.1", "::1"};  // names and addresses under which peers reach the server
  std::time_t now = std::time(nullptr);
};

struct CertificateInfo {
  std::string name;
  std::vector<ClientRange> clients;  // that it is for; empty = the authority's, the server's, or another one
  std::string serial;
  std::string valid_until;
  std::int64_t days_left = 0;  // until then, rounded down; negative = it has expired
  bool is_revoked = false, is_expired = false;
};

inline constexpr std::uint32_t kMostCertificates = 100'000;

// Creates the folder with all keys and certificates, or nothing if that fails. Returns the names of the peers' certificates. Throws
// ConfigError for a request that cannot be met, also if the folder has content already.
FL_API std::vector<std::string> create_authority(const AuthorityRequest& request);

// Adds a certificate of the folder to its list of revoked certificates. Throws ConfigError if there is no such certificate, if it is the
// authority's, or if it is revoked already.
FL_API void revoke_certificate(const std::filesystem::path& folder, const std::string& name);

struct RenewalRequest {
  std::filesystem::path folder{};
  std::string name{};
  int days = kUsualDays;  // of validity, but not longer than the authority's
  bool revokes_old = false;
  std::time_t now = std::time(nullptr);
};

// Replaces a certificate of the folder and its key by new ones with the same use and the same names or clients. The old certificate stays
// valid until its end, unless it is revoked. Returns until when the new one is valid. Throws ConfigError if there is no such certificate,
// and if it is the authority's.
FL_API std::string renew_certificate(const RenewalRequest& request);

// Returns the folder's certificates, the authority and the server first.
[[nodiscard]] FL_API std::vector<CertificateInfo> list_certificates(const std::filesystem::path& folder);

}  // namespace fl::net
