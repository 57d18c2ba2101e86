#include "net/transport/tls_files.hpp"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

namespace {

constexpr const char* kClientsUri = "urn:fedbits:clients:";
constexpr off_t kMostFileBytes = off_t{64} << 20;  // a list of revoked certificates has about 40 bytes for each

std::string last_system_error() { return std::error_code(errno, std::generic_category()).message(); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// The bytes of a file, which are overwritten before their memory is released.
class FileBytes {
 public:
  FileBytes(const std::filesystem::path& file, bool is_secret) {
    const Descriptor open(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (open.number() < 0) throw key_error(kCertificatesKey, "cannot read " + file.string() + ": " + last_system_error());
    struct stat status {};
    if (::fstat(open.number(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kMostFileBytes)
      throw key_error(kCertificatesKey, file.string() + " has to be a regular file of at most 64 MiB");
    if (is_secret && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
      throw key_error(kCertificatesKey,
                      "other users can access the key " + file.string() + "; chmod 600 " + file.string() + " makes it private");
    bytes_.resize(static_cast<std::size_t>(status.st_size));
    std::size_t have = 0;
    while (have < bytes_.size()) {
      const ssize_t read = ::read(open.number(), bytes_.data() + have, bytes_.size() - have);
      if (read <= 0) throw key_error(kCertificatesKey, "cannot read " + file.string());
      have += static_cast<std::size_t>(read);
    }
  }
  ~FileBytes() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  [[nodiscard]] Openssl<BIO> bio() const { return Openssl<BIO>(BIO_new_mem_buf(bytes_.data(), static_cast<int>(bytes_.size()))); }

 private:
  std::string bytes_;
};

// Answers OpenSSL's question for a password: there is none, and the terminal is not asked.
int no_password(char*, int, int, void*) { return -1; }

template <class T, class Read>
Openssl<T> read_pem(const std::filesystem::path& file, bool is_secret, const char* kind, const Read& read) {
  const FileBytes bytes(file, is_secret);
  Openssl<T> object(read(bytes.bio().get()));
  if (!object) throw key_error(kCertificatesKey, file.string() + " is not " + kind + " in PEM form (" + openssl_reason() + ")");
  return object;
}

template <class Write>
void write_pem(const std::filesystem::path& file, const Write& write) {
  const Descriptor open(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (open.number() < 0) throw Error("cannot create " + file.string() + ": " + last_system_error());
  const Openssl<BIO> bio(BIO_new_fd(open.number(), BIO_NOCLOSE));
  require_openssl(bio && write(bio.get()) == 1 && BIO_flush(bio.get()) == 1, "write " + file.string());
  if (::fsync(open.number()) != 0) throw Error("cannot write " + file.string() + ": " + last_system_error());
}

}  // namespace

std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "no reason given";
}

void require_openssl(bool holds, const std::string& what) {
  if (!holds) throw Error("cannot " + what + ": " + openssl_reason());
}

Certificate read_certificate(const std::filesystem::path& file) {
  return read_pem<X509>(file, false, "a certificate", [](BIO* bio) { return PEM_read_bio_X509(bio, nullptr, no_password, nullptr); });
}

PrivateKey read_key(const std::filesystem::path& file) {
  return read_pem<EVP_PKEY>(file, true, "an unencrypted private key",
                            [](BIO* bio) { return PEM_read_bio_PrivateKey(bio, nullptr, no_password, nullptr); });
}

RevocationList read_revocation_list(const std::filesystem::path& file) {
  return read_pem<X509_CRL>(file, false, "a list of revoked certificates",
                            [](BIO* bio) { return PEM_read_bio_X509_CRL(bio, nullptr, no_password, nullptr); });
}

void write_certificate(const std::filesystem::path& file, const Certificate& certificate) {
  write_pem(file, [&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); });
}

void write_key(const std::filesystem::path& file, const PrivateKey& key) {
  write_pem(file, [&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
}

void write_revocation_list(const std::filesystem::path& file, const RevocationList& list) {
  write_pem(file, [&](BIO* bio) { return PEM_write_bio_X509_CRL(bio, list.get()); });
}

std::string certificate_name(const std::vector<ClientRange>& clients) {
  return (num_clients(clients) == 1 ? "client-" : "clients-") + to_text(clients);
}

std::string clients_uri(const std::vector<ClientRange>& clients) { return kClientsUri + to_text(clients); }

Identity identity_of(const X509& certificate) {
  const Openssl<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string found;
  int count = 0;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                                static_cast<std::size_t>(ASN1_STRING_length(uri)));
    if (!text.starts_with(kClientsUri)) continue;
    found = text.substr(std::string_view(kClientsUri).size());
    ++count;
  }
  if (count != 1) throw ProtocolError("its certificate does not state its clients");
  try {
    const std::vector<ClientRange> clients = parse_client_ranges(found);
    return {.name = certificate_name(clients), .clients = clients};
  } catch (const ConfigError&) {
    throw ProtocolError("its certificate does not state its clients");
  }
}

std::vector<ClientRange> clients_of(const X509& certificate) {
  try {
    return identity_of(certificate).clients;
  } catch (const ProtocolError&) {
    return {};
  }
}

std::string serial_text(const X509& certificate) {
  const Openssl<BIGNUM> number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(&certificate), nullptr));
  char* digits = number ? BN_bn2hex(number.get()) : nullptr;
  std::string text = digits != nullptr ? digits : "";
  OPENSSL_free(digits);
  return text;
}

std::string end_text(const X509& certificate) {
  std::tm moment{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &moment) != 1) return "unknown";
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &moment)};
}

}  // namespace fl::net
