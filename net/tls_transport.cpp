#include "net/tls_transport.hpp"

#include <openssl/ssl.h>
#include <sys/stat.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "net/certificate_authority.hpp"
#include "net/tls_files.hpp"

namespace fl::net {

namespace {

namespace fs = std::filesystem;
namespace ssl = asio::ssl;
using asio::ip::tcp;

constexpr const char* kKey = "--certs";

// What handshakes of one side need.
struct Credentials {
  ssl::context context;
  RevocationList revoked;  // null where a peer's folder has no list

  [[nodiscard]] bool lists(X509& certificate) const {
    X509_REVOKED* entry = nullptr;
    return revoked && X509_CRL_get0_by_cert(revoked.get(), &entry, &certificate) == 1;
  }
};

void use_own_certificate(SSL_CTX* context, const CertificateFolder& files, const std::string& name) {
  const Certificate own = read_certificate(files.certificate(name));
  const PrivateKey key = read_key(files.key(name));
  if (X509_cmp_current_time(X509_get0_notAfter(own.get())) < 0)
    throw key_error(kKey,
                    files.certificate(name).string() + " has expired (" + end_text(*own) + "); fedbits certs renew makes another one");
  if (SSL_CTX_use_certificate(context, own.get()) != 1 || SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    throw key_error(kKey, files.key(name).string() + " is not the key of " + files.certificate(name).string());
}

std::shared_ptr<Credentials> load_credentials(const CertificateFolder& files, const std::string& name) {
  const bool is_server = name == kServerName;
  auto made = std::make_shared<Credentials>(
      Credentials{.context = ssl::context(is_server ? ssl::context::tls_server : ssl::context::tls_client), .revoked = nullptr});
  SSL_CTX* context = made->context.native_handle();
  const Certificate authority = read_certificate(files.certificate(kAuthorityName));
  std::error_code error;
  if (is_server || fs::exists(files.revoked(), error)) made->revoked = read_revocation_list(files.revoked());
  if (made->revoked && X509_CRL_verify(made->revoked.get(), X509_get0_pubkey(authority.get())) != 1)
    throw key_error(kKey, files.revoked().string() + " is not signed by " + files.certificate(kAuthorityName).string());
  use_own_certificate(context, files, name);

  X509_STORE* store = SSL_CTX_get_cert_store(context);
  const unsigned long flags = X509_V_FLAG_X509_STRICT | (made->revoked ? X509_V_FLAG_CRL_CHECK : 0);
  require_openssl(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 && X509_STORE_add_cert(store, authority.get()) == 1 &&
                      (!made->revoked || X509_STORE_add_crl(store, made->revoked.get()) == 1) && X509_STORE_set_flags(store, flags) == 1 &&
                      SSL_CTX_set_num_tickets(context, 0) == 1 && (!is_server || SSL_CTX_add_client_CA(context, authority.get()) == 1),
                  "prepare TLS");
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(context, 1);
  return made;
}

// The credentials in a folder, read again when the list of revoked certificates or this side's own certificate changes.
class CredentialSource {
 public:
  // Throws ConfigError if the folder's files cannot be used.
  CredentialSource(const fs::path& folder, std::string name) : files_{folder}, name_(std::move(name)) {
    if (!fs::is_directory(folder)) throw key_error(kKey, folder.string() + " is no folder; fedbits certs init creates one");
    stamp_ = stamp();
    credentials_ = load_credentials(files_, name_);
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  // Returns the credentials as they were when the files could be read last. trouble() says why the files cannot be used now, or "".
  [[nodiscard]] const std::shared_ptr<Credentials>& current() {
    refresh();
    return credentials_;
  }
  // Returns the same, but looks at the file at most every 100 ms, for the many connections that ask all the time.
  [[nodiscard]] const std::shared_ptr<Credentials>& recent() {
    if (std::chrono::steady_clock::now() - seen_ > std::chrono::milliseconds(100)) refresh();
    return credentials_;
  }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  using FileStamp = std::array<std::int64_t, 5>;
  using Stamp = std::array<FileStamp, 3>;  // equal = the files have not changed

  [[nodiscard]] static FileStamp stamp_of(const fs::path& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) return {};
    return {static_cast<std::int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            status.st_ctim.tv_nsec};
  }
  [[nodiscard]] Stamp stamp() const {
    return {stamp_of(files_.revoked()), stamp_of(files_.certificate(name_)), stamp_of(files_.key(name_))};
  }
  void refresh() {
    seen_ = std::chrono::steady_clock::now();
    const Stamp now = stamp();
    if (now == stamp_) return;
    const bool has_new_list = now[0] != stamp_[0];
    stamp_ = now;
    try {
      credentials_ = load_credentials(files_, name_);
      trouble_.clear();
    } catch (const Error&) {
      // An own pair that cannot be used, as between its two files, leaves the old one in use. A list that cannot be read accepts nobody.
      if (!has_new_list && trouble_.empty()) return;
      trouble_ = "the list of revoked certificates cannot be used now";
    }
  }

  CertificateFolder files_;
  std::string name_;
  Stamp stamp_{};
  std::chrono::steady_clock::time_point seen_{};
  std::shared_ptr<Credentials> credentials_;
  std::string trouble_;
};

// Throws the error of OpenSSL: TlsAlert for an alert of the other side, else ProtocolError.
[[noreturn]] void throw_reason(const boost::system::error_code& error) {
  const auto code = static_cast<unsigned long>(static_cast<unsigned int>(error.value()));
  const int reason = ERR_GET_REASON(code);
  if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
    throw TlsAlert(std::string("the other side ends TLS: ") + SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
  const char* text = ERR_reason_error_string(code);
  throw ProtocolError(std::string("TLS: ") + (text != nullptr ? text : "no reason given"));
}

class TlsConnection final : public Connection {
 public:
  TlsConnection(tcp::socket socket, std::shared_ptr<CredentialSource> source, const std::string& host)
      : source_(std::move(source)),
        credentials_(source_->current()),
        stream_(std::move(socket), credentials_->context),
        is_server_(host.empty()),
        trouble_(is_server_ ? source_->trouble() : "") {
    boost::system::error_code error;
    const tcp::endpoint endpoint = stream_.lowest_layer().remote_endpoint(error);
    if (!error) remote_ = endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
    if (!is_server_) expect_server(host);
  }

  asio::awaitable<void> handshake() override {
    if (!trouble_.empty()) throw ProtocolError(trouble_);
    boost::system::error_code error;
    co_await stream_.async_handshake(is_server_ ? ssl::stream_base::server : ssl::stream_base::client,
                                     asio::redirect_error(asio::use_awaitable, error));
    const long verdict = SSL_get_verify_result(stream_.native_handle());
    if (error && verdict != X509_V_OK)
      throw ProtocolError(std::string("its certificate is refused: ") + X509_verify_cert_error_string(verdict));
    if (error) throw_error(error);
    is_established_ = true;
    certificate_.reset(SSL_get1_peer_certificate(stream_.native_handle()));
    if (!certificate_) throw ProtocolError("it has no certificate");
    identity_ = is_server_ ? identity_of(*certificate_) : Identity{.name = kServerName, .clients = {}};
  }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    boost::system::error_code error;
    const std::size_t bytes = co_await stream_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, error));
    if (error) throw_error(error);
    co_return bytes;
  }
  asio::awaitable<void> write(std::vector<asio::const_buffer> pieces) override {
    co_await asio::async_write(stream_, pieces, asio::use_awaitable);
  }
  asio::awaitable<void> finish() override {
    const CloseTimer timer(*this, kFarewell);
    boost::system::error_code ignored;
    if (is_established_) co_await stream_.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
    stream_.next_layer().shutdown(tcp::socket::shutdown_send, ignored);
    co_await drain(stream_.next_layer());
    close();
  }
  void close() noexcept override {
    boost::system::error_code ignored;
    stream_.next_layer().close(ignored);
  }
  [[nodiscard]] asio::any_io_executor executor() override { return stream_.get_executor(); }
  [[nodiscard]] std::string remote() const override { return remote_; }
  [[nodiscard]] const Identity& identity() const override { return identity_; }
  [[nodiscard]] std::string why_invalid() override {
    if (!certificate_) return {};
    if (X509_cmp_current_time(X509_get0_notAfter(certificate_.get())) < 0) return "its certificate " + identity_.name + " has expired";
    if (source_->recent()->lists(*certificate_)) return "its certificate " + identity_.name + " is revoked";
    return {};
  }

 private:
  // Has OpenSSL compare the names in the server's certificate with the host.
  void expect_server(const std::string& host) {
    SSL* session = stream_.native_handle();
    X509_VERIFY_PARAM* rules = SSL_get0_param(session);
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1) return;
    ERR_clear_error();
    require_openssl(X509_VERIFY_PARAM_set1_host(rules, host.c_str(), 0) == 1 && SSL_set_tlsext_host_name(session, host.c_str()) == 1,
                    "expect the server " + host);
  }

  // Throws what read_some() and handshake() throw. A connection that ends without TLS's own end is one that ends: a session that is
  // complete ends with a goodbye, so nothing is taken for complete by this.
  [[noreturn]] void throw_error(const boost::system::error_code& error) const {
    if (error.category() == asio::error::get_ssl_category()) throw_reason(error);
    throw boost::system::system_error(error == ssl::error::stream_truncated ? asio::error::eof : error);
  }

  std::shared_ptr<CredentialSource> source_;
  std::shared_ptr<Credentials> credentials_;
  ssl::stream<tcp::socket> stream_;
  bool is_server_ = false, is_established_ = false;
  std::string trouble_, remote_;
  Certificate certificate_;  // of the other side
  Identity identity_;
};

class TlsTransport final : public Transport {
 public:
  explicit TlsTransport(std::shared_ptr<CredentialSource> source) : source_(std::move(source)) {}
  [[nodiscard]] std::unique_ptr<Connection> accepted(tcp::socket socket) override {
    return std::make_unique<TlsConnection>(std::move(socket), source_, "");
  }
  [[nodiscard]] std::unique_ptr<Connection> connected(tcp::socket socket, const std::string& host) override {
    return std::make_unique<TlsConnection>(std::move(socket), source_, host);
  }

 private:
  std::shared_ptr<CredentialSource> source_;
};

// Returns the certificate in a folder that is for all of these clients and for the fewest others.
std::string find_identity(const fs::path& folder, const std::vector<ClientRange>& clients) {
  std::string best, all;
  std::uint64_t fewest = 0;
  for (const CertificateInfo& info : list_certificates(folder)) {
    if (info.clients.empty()) continue;
    all += (all.empty() ? "" : ", ") + info.name;
    if (!Identity{.name = info.name, .clients = info.clients}.may_host(clients)) continue;
    const std::uint64_t count = num_clients(info.clients);
    if (!best.empty() && count >= fewest) continue;
    best = info.name;
    fewest = count;
  }
  constexpr std::size_t kMostText = 200;
  if (all.size() > kMostText) all = all.substr(0, kMostText) + "...";
  if (best.empty())
    throw key_error("--identity", "no certificate in " + folder.string() + " is for clients " + to_text(clients) +
                                      (all.empty() ? "" : "; it has " + all));
  return best;
}

}  // namespace

std::shared_ptr<Transport> tls_server_transport(const fs::path& folder) {
  return std::make_shared<TlsTransport>(std::make_shared<CredentialSource>(folder, kServerName));
}

std::shared_ptr<Transport> tls_peer_transport(const fs::path& folder, const std::string& identity,
                                              const std::vector<ClientRange>& clients) {
  const std::string name = identity.empty() ? find_identity(folder, clients) : identity;
  const std::vector<ClientRange> own = clients_of(*read_certificate(CertificateFolder{folder}.certificate(name)));
  if (!Identity{.name = name, .clients = own}.may_host(clients))
    throw key_error("--identity", "the certificate " + name + " is for " + (own.empty() ? "no clients" : "clients " + to_text(own)) +
                                      ", not for " + to_text(clients));
  return std::make_shared<TlsTransport>(std::make_shared<CredentialSource>(folder, name));
}

}  // namespace fl::net
