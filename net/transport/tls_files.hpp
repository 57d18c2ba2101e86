// Certificates, keys and lists of revoked certificates as objects of OpenSSL and as PEM files.
//
// A folder of certificates (`fedbits certs init`) holds, each accessible only to its owner:
//   ca.pem, ca.key           the authority; the key is needed only to revoke
//   revoked.pem              the authority's list of revoked certificates
//   server.pem, server.key   the server's certificate
//   NAME.pem, NAME.key       of each peer: client-7 or clients-0-9
// Keys are never printed, and errors name files alone.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <memory>
#include <string>

#include "net/transport/connection.hpp"

namespace fl::net {

// Releases an object of OpenSSL.
struct OpensslFree {
  void operator()(BIO* object) const noexcept { BIO_free_all(object); }
  void operator()(X509* object) const noexcept { X509_free(object); }
  void operator()(X509_CRL* object) const noexcept { X509_CRL_free(object); }
  void operator()(X509_REVOKED* object) const noexcept { X509_REVOKED_free(object); }
  void operator()(X509_EXTENSION* object) const noexcept { X509_EXTENSION_free(object); }
  void operator()(EVP_PKEY* object) const noexcept { EVP_PKEY_free(object); }
  void operator()(BIGNUM* object) const noexcept { BN_free(object); }
  void operator()(ASN1_STRING* object) const noexcept { ASN1_STRING_free(object); }  // also of numbers and times
  void operator()(GENERAL_NAMES* object) const noexcept { GENERAL_NAMES_free(object); }
};
template <class T>
using Openssl = std::unique_ptr<T, OpensslFree>;
using Certificate = Openssl<X509>;
using PrivateKey = Openssl<EVP_PKEY>;
using RevocationList = Openssl<X509_CRL>;

// The paths of a folder of certificates.
struct CertificateFolder {
  std::filesystem::path path;

  [[nodiscard]] std::filesystem::path certificate(const std::string& name) const { return path / (name + ".pem"); }
  [[nodiscard]] std::filesystem::path key(const std::string& name) const { return path / (name + ".key"); }
  [[nodiscard]] std::filesystem::path revoked() const { return path / "revoked.pem"; }
};
inline constexpr const char* kAuthorityName = "ca";
inline constexpr const char* kServerName = "server";
inline constexpr const char* kCertificatesKey = "--certs";  // that ConfigErrors name

// Returns the reason of OpenSSL's last error on this thread, and forgets it.
[[nodiscard]] std::string openssl_reason();
// Throws Error "cannot `what`: reason" unless `holds`.
void require_openssl(bool holds, const std::string& what);

// Each returns the content of a PEM file. Throws ConfigError (key --certs) if the file is missing, damaged or of another kind, and for a
// key that others can read or that is encrypted.
[[nodiscard]] Certificate read_certificate(const std::filesystem::path& file);
[[nodiscard]] PrivateKey read_key(const std::filesystem::path& file);
[[nodiscard]] RevocationList read_revocation_list(const std::filesystem::path& file);

// Each writes a new PEM file that only its owner can read. Throws Error if the file exists.
void write_certificate(const std::filesystem::path& file, const Certificate& certificate);
void write_key(const std::filesystem::path& file, const PrivateKey& key);
void write_revocation_list(const std::filesystem::path& file, const RevocationList& list);

// Returns the name of the certificate for these clients: client-7, clients-0-9.
[[nodiscard]] std::string certificate_name(const std::vector<ClientRange>& clients);
// Returns the URI that states the clients of a certificate: urn:fedbits:clients:0-9.
[[nodiscard]] std::string clients_uri(const std::vector<ClientRange>& clients);
// Returns the identity in a peer's certificate. Throws ProtocolError unless exactly one URI of its subject's alternative names states
// clients.
[[nodiscard]] Identity identity_of(const X509& certificate);
// Returns the clients of a certificate; none if it does not state them as a peer's does.
[[nodiscard]] std::vector<ClientRange> clients_of(const X509& certificate);

// Returns the serial number as hexadecimal digits, and the last moment of validity in UTC.
[[nodiscard]] std::string serial_text(const X509& certificate);
[[nodiscard]] std::string end_text(const X509& certificate);

}  // namespace fl::net
