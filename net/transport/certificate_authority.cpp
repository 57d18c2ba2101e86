#include "net/transport/certificate_authority.hpp"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cstdlib>
#include <fstream>

#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "net/transport/tls_files.hpp"

namespace fl::net {

namespace {

namespace fs = std::filesystem;

constexpr long kClockSkew_s = 3600;  // certificates are valid for clocks that are this slow

PrivateKey new_key() {
  PrivateKey key(EVP_EC_gen("P-256"));
  require_openssl(key != nullptr, "make a key");
  return key;
}

// Sets a serial number of 159 random bits, which nobody can predict and which occurs once.
void set_serial(X509& certificate) {
  const Openssl<BIGNUM> number(BN_new());
  require_openssl(number && BN_rand(number.get(), 159, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr,
                  "draw a serial number");
}

void add_extension(X509& certificate, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const Openssl<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  require_openssl(extension && X509_add_ext(&certificate, extension.get(), -1) == 1, "write the extension " + value);
}

void set_name(X509& certificate, const std::string& name) {
  require_openssl(X509_NAME_add_entry_by_txt(X509_get_subject_name(&certificate), "CN", MBSTRING_ASC,
                                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1,
                  "write the name " + name);
}

struct Validity {
  std::time_t now = 0;
  int days = 0;
};

// Returns a certificate for the key without its extensions and its signature.
Certificate begin_certificate(const std::string& name, const PrivateKey& key, const Validity& validity) {
  Certificate certificate(X509_new());
  std::time_t now = validity.now;
  require_openssl(certificate && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                      X509_time_adj_ex(X509_getm_notBefore(certificate.get()), 0, -kClockSkew_s, &now) != nullptr &&
                      X509_time_adj_ex(X509_getm_notAfter(certificate.get()), validity.days, 0, &now) != nullptr &&
                      X509_set_pubkey(certificate.get(), key.get()) == 1,
                  "make a certificate");
  set_serial(*certificate);
  set_name(*certificate, name);
  return certificate;
}

// The authority with its key, in memory.
struct Authority {
  PrivateKey key;
  Certificate certificate;
};

Authority new_authority(const Validity& validity) {
  Authority authority{.key = new_key(), .certificate = {}};
  unsigned char mark[4];
  require_openssl(RAND_bytes(mark, sizeof mark) == 1, "draw random bytes");
  char name[32];
  std::snprintf(name, sizeof name, "fedbits CA %02x%02x%02x%02x", mark[0], mark[1], mark[2], mark[3]);
  authority.certificate = begin_certificate(name, authority.key, validity);
  X509& own = *authority.certificate;
  require_openssl(X509_set_issuer_name(&own, X509_get_subject_name(&own)) == 1, "write the issuer");
  add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(own, own, NID_subject_key_identifier, "hash");
  add_extension(own, own, NID_authority_key_identifier, "keyid:always");
  require_openssl(X509_sign(&own, authority.key.get(), EVP_sha256()) > 0, "sign the authority");
  return authority;
}

// The purpose of a certificate.
struct Purpose {
  std::string use;    // serverAuth or clientAuth
  std::string names;  // subject's alternative names, as OpenSSL writes them
};

// Writes a key and its certificate. `like` = a certificate whose use and names it takes over; null = those of `purpose`.
void certify(const Authority& authority, const CertificateFolder& folder, const std::string& name, const Purpose& purpose,
             const Validity& validity, const X509* like = nullptr) {
  const PrivateKey key = new_key();
  const Certificate certificate = begin_certificate(name, key, validity);
  X509& issuer = *authority.certificate;
  if (ASN1_TIME_compare(X509_get0_notAfter(certificate.get()), X509_get0_notAfter(&issuer)) > 0)
    require_openssl(X509_set1_notAfter(certificate.get(), X509_get0_notAfter(&issuer)) == 1, "write the end of " + name);
  require_openssl(X509_set_issuer_name(certificate.get(), X509_get_subject_name(&issuer)) == 1, "write the issuer");
  add_extension(*certificate, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(*certificate, issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(*certificate, issuer, NID_subject_key_identifier, "hash");
  add_extension(*certificate, issuer, NID_authority_key_identifier, "keyid:always");
  for (const auto& [kind, value] : {std::pair{NID_ext_key_usage, purpose.use}, std::pair{NID_subject_alt_name, purpose.names}}) {
    if (like == nullptr) {
      add_extension(*certificate, issuer, kind, value);
      continue;
    }
    X509_EXTENSION* same = X509_get_ext(like, X509_get_ext_by_NID(like, kind, -1));
    require_openssl(same != nullptr && X509_add_ext(certificate.get(), same, -1) == 1, "take over what " + name + " is for");
  }
  require_openssl(X509_sign(certificate.get(), authority.key.get(), EVP_sha256()) > 0, "sign " + name);
  write_key(folder.key(name), key);
  write_certificate(folder.certificate(name), certificate);
}

// Adds the number of the list, which grows by one with each list, replaces the dates and signs it.
void sign_list(X509_CRL& list, X509& issuer, EVP_PKEY& key, long number, std::time_t now) {
  const Openssl<ASN1_TIME> moment(ASN1_TIME_set(nullptr, now));
  const Openssl<ASN1_INTEGER> count(ASN1_INTEGER_new());
  require_openssl(moment && count && ASN1_INTEGER_set(count.get(), number) == 1 && X509_CRL_set1_lastUpdate(&list, moment.get()) == 1 &&
                      X509_CRL_set1_nextUpdate(&list, X509_get0_notAfter(&issuer)) == 1 &&
                      X509_CRL_add1_ext_i2d(&list, NID_crl_number, count.get(), 0, X509V3_ADD_REPLACE) == 1 && X509_CRL_sort(&list) == 1 &&
                      X509_CRL_sign(&list, &key, EVP_sha256()) > 0,
                  "sign the list of revoked certificates");
}

RevocationList empty_list(const Authority& authority, std::time_t now) {
  RevocationList list(X509_CRL_new());
  require_openssl(list && X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) == 1 &&
                      X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(authority.certificate.get())) == 1,
                  "make a list of revoked certificates");
  X509V3_CTX context;
  X509V3_set_ctx(&context, authority.certificate.get(), nullptr, nullptr, list.get(), 0);
  const Openssl<X509_EXTENSION> issuer(X509V3_EXT_conf_nid(nullptr, &context, NID_authority_key_identifier, "keyid:always"));
  require_openssl(issuer && X509_CRL_add_ext(list.get(), issuer.get(), -1) == 1, "make a list of revoked certificates");
  sign_list(*list, *authority.certificate, *authority.key, 1, now);
  return list;
}

// Returns the server's names as OpenSSL writes them: DNS:localhost,IP:127.0.0.1.
std::string server_names(const std::vector<std::string>& names) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
  std::string text;
  for (const std::string& name : names) {
    boost::system::error_code error;
    static_cast<void>(asio::ip::make_address(name, error));
    if (error && (name.empty() || name.size() > 253 || name.find_first_not_of(kLetters) != std::string::npos))
      throw key_error("--server", "must be a host name or an address, is '" + name + "'");
    text += (text.empty() ? "" : ",") + std::string(error ? "DNS:" : "IP:") + name;
  }
  if (text.empty()) throw key_error("--server", "names no server");
  return text;
}

void require_days(int days) {
  if (days < 1 || days > kMostDays)
    throw key_error("--days", "must be from 1 to " + std::to_string(kMostDays) + ", is " + std::to_string(days));
}

void check_request(const AuthorityRequest& request) {
  if (request.num_clients == 0) throw key_error("--clients", "must be at least 1");
  if (request.per_peer == 0) throw key_error("--per-peer", "must be at least 1");
  require_days(request.days);
  if ((request.num_clients - 1) / request.per_peer + 1 > kMostCertificates)
    throw key_error("--clients",
                    "would need more than " + std::to_string(kMostCertificates) + " certificates; --per-peer puts several clients on one");
  std::error_code error;
  if (fs::exists(fs::symlink_status(request.folder, error)) &&
      !(fs::is_directory(request.folder, error) && fs::is_empty(request.folder, error)))
    throw key_error("DIR", request.folder.string() + " exists and is not overwritten; name a folder that is new");
}

// A private folder beside its later place. It is removed with its content unless it gets there.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& place) : place_(place.has_filename() ? place : place.parent_path()) {
    if (place_.has_parent_path()) fs::create_directories(place_.parent_path());
    std::string text = place_.string() + ".XXXXXX";
    if (::mkdtemp(text.data()) == nullptr) throw Error("cannot create a folder beside " + place_.string());
    path_ = text;
  }
  ~NewFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }
  void put_in_place() {
    std::error_code error;
    fs::rename(path_, place_, error);  // replaces an empty folder, and no other
    if (error) throw Error("cannot create " + place_.string() + ": " + error.message());
    path_.clear();
  }

 private:
  fs::path place_, path_;
};

// Holds a folder for one process that changes it.
class FolderHold {
 public:
  explicit FolderHold(const fs::path& folder) : number_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (number_ < 0) throw key_error("DIR", folder.string() + " is no folder of certificates; fedbits certs init creates one");
    ::flock(number_, LOCK_EX);
  }
  ~FolderHold() { ::close(number_); }
  FolderHold(const FolderHold&) = delete;
  FolderHold& operator=(const FolderHold&) = delete;

 private:
  int number_;
};

bool is_listed(X509_CRL& list, X509& certificate) {
  X509_REVOKED* entry = nullptr;
  return X509_CRL_get0_by_cert(&list, &entry, &certificate) == 1;
}

// Signs a list that has one more certificate, and replaces the old one by it.
void add_to_list(const CertificateFolder& files, const Authority& authority, X509& revoked, const std::string& name) {
  const RevocationList list = read_revocation_list(files.revoked());
  const std::time_t now = std::time(nullptr);
  const Openssl<ASN1_TIME> moment(ASN1_TIME_set(nullptr, now));
  Openssl<X509_REVOKED> entry(X509_REVOKED_new());
  require_openssl(moment && entry && X509_REVOKED_set_serialNumber(entry.get(), X509_get_serialNumber(&revoked)) == 1 &&
                      X509_REVOKED_set_revocationDate(entry.get(), moment.get()) == 1 &&
                      X509_CRL_add0_revoked(list.get(), entry.get()) == 1,
                  "revoke " + name);
  static_cast<void>(entry.release());  // the list owns it now
  const Openssl<ASN1_INTEGER> number(static_cast<ASN1_INTEGER*>(X509_CRL_get_ext_d2i(list.get(), NID_crl_number, nullptr, nullptr)));
  sign_list(*list, *authority.certificate, *authority.key, number ? ASN1_INTEGER_get(number.get()) + 1 : 1, now);
  const fs::path next = files.revoked().string() + ".new";
  std::error_code ignored;
  fs::remove(next, ignored);  // of a process that was killed
  write_revocation_list(next, list);
  fs::rename(next, files.revoked());
}

Authority read_authority(const CertificateFolder& files) {
  return {.key = read_key(files.key(kAuthorityName)), .certificate = read_certificate(files.certificate(kAuthorityName))};
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".pem" && entry.path().filename() != "revoked.pem") names.push_back(entry.path().stem().string());
  if (error) throw key_error("DIR", "cannot read " + folder.string() + ": " + error.message());
  const auto rank = [](const std::string& name) { return name == kAuthorityName ? 0 : name == kServerName ? 1 : 2; };
  std::ranges::sort(names, [&](const std::string& a, const std::string& b) {
    return std::tuple(rank(a), a.size(), a) < std::tuple(rank(b), b.size(), b);
  });
  return names;
}

// Throws ConfigError unless the folder has this certificate, and it is not the authority's. `what` is done to it.
void require_certificate(const CertificateFolder& files, const std::string& name, const std::string& what) {
  const std::vector<std::string> names = names_in(files.path);
  if (std::ranges::find(names, name) == names.end())
    throw key_error("NAME", "there is no certificate " + name + " in " + files.path.string() + "; fedbits certs list names them");
  if (name == kAuthorityName) throw key_error("NAME", "the authority cannot " + what + " itself; fedbits certs init creates another one");
}

// Returns the whole days until the end of a certificate.
std::int64_t days_left(const X509& certificate) {
  int days = 0, seconds = 0;
  require_openssl(ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(&certificate)) == 1, "read the end of a certificate");
  return seconds < 0 ? days - 1 : days;
}

// Writes a file that makes git leave out the whole folder, so that nobody adds its keys to a repository by accident.
void write_git_rules(const fs::path& folder) {
  const fs::path file = folder / ".gitignore";
  std::ofstream out(file);
  out << "*\n";
  out.close();
  std::error_code error;
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, error);
  if (!out || error) throw Error("cannot write " + file.string());
}

}  // namespace

std::vector<std::string> create_authority(const AuthorityRequest& request) {
  check_request(request);
  const std::string server = server_names(request.server);
  NewFolder folder(request.folder);
  const CertificateFolder files{folder.path()};
  const Validity validity{request.now, request.days};
  const Authority authority = new_authority({request.now, kMostDays});  // longer, so that certificates can be renewed
  write_key(files.key(kAuthorityName), authority.key);
  write_certificate(files.certificate(kAuthorityName), authority.certificate);
  write_revocation_list(files.revoked(), empty_list(authority, request.now));
  certify(authority, files, kServerName, {"serverAuth", server}, validity);
  std::vector<std::string> names;
  for (std::uint32_t first = 0; first < request.num_clients;) {
    const std::uint32_t count = std::min(request.per_peer, request.num_clients - first);
    const std::vector<ClientRange> clients{{first, first + count - 1}};
    names.push_back(certificate_name(clients));
    certify(authority, files, names.back(), {"clientAuth", "URI:" + clients_uri(clients)}, validity);
    first += count;
  }
  write_git_rules(folder.path());
  folder.put_in_place();
  return names;
}

void revoke_certificate(const fs::path& folder, const std::string& name) {
  const FolderHold hold(folder);
  const CertificateFolder files{folder};
  require_certificate(files, name, "revoke");
  const Authority authority = read_authority(files);
  const Certificate revoked = read_certificate(files.certificate(name));
  if (is_listed(*read_revocation_list(files.revoked()), *revoked))
    throw key_error("NAME", "the certificate " + name + " is revoked already");
  add_to_list(files, authority, *revoked, name);
}

std::string renew_certificate(const RenewalRequest& request) {
  require_days(request.days);
  const FolderHold hold(request.folder);
  const CertificateFolder files{request.folder};
  const std::string& name = request.name;
  require_certificate(files, name, "renew");
  const Authority authority = read_authority(files);
  const Certificate old = read_certificate(files.certificate(name));
  if (X509_cmp_time(X509_get0_notAfter(authority.certificate.get()), const_cast<std::time_t*>(&request.now)) < 0)
    throw key_error("DIR", "the authority has expired; fedbits certs init creates another one");
  std::string text = (request.folder / "renew.XXXXXX").string();
  if (::mkdtemp(text.data()) == nullptr) throw Error("cannot create a folder in " + request.folder.string());
  const CertificateFolder made{text};
  try {
    certify(authority, made, name, {}, {request.now, request.days}, old.get());
    // A server that reads the folder in between finds a key that does not fit, and goes on with the old pair until the certificate is
    // there.
    fs::rename(made.key(name), files.key(name));
    fs::rename(made.certificate(name), files.certificate(name));
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(made.path, ignored);
    throw;
  }
  fs::remove_all(made.path);
  if (request.revokes_old && !is_listed(*read_revocation_list(files.revoked()), *old)) add_to_list(files, authority, *old, name);
  return end_text(*read_certificate(files.certificate(name)));
}

std::vector<CertificateInfo> list_certificates(const fs::path& folder) {
  const CertificateFolder files{folder};
  std::error_code error;
  const RevocationList list = fs::exists(files.revoked(), error) ? read_revocation_list(files.revoked()) : nullptr;
  std::vector<CertificateInfo> found;
  for (const std::string& name : names_in(folder)) {
    const Certificate certificate = read_certificate(files.certificate(name));
    found.push_back({.name = name,
                     .clients = clients_of(*certificate),
                     .serial = serial_text(*certificate),
                     .valid_until = end_text(*certificate),
                     .days_left = days_left(*certificate),
                     .is_revoked = list && is_listed(*list, *certificate),
                     .is_expired = X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0});
  }
  return found;
}

}  // namespace fl::net
