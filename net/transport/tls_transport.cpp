#include "net/transport/tls_transport.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <span>
#include <utility>

#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "net/transport/certificate_authority.hpp"
#include "net/transport/tls_files.hpp"

namespace fl::net {

namespace {

namespace fs = std::filesystem;
namespace ssl = asio::ssl;
using asio::ip::tcp;

constexpr std::size_t kRecordBytes = 16384;  // of TLS, without its header

// The data that handshakes of one side need.
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
    throw key_error(kCertificatesKey,
                    files.certificate(name).string() + " has expired (" + end_text(*own) + "); fedbits certs renew makes another one");
  if (SSL_CTX_use_certificate(context, own.get()) != 1 || SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    throw key_error(kCertificatesKey, files.key(name).string() + " is not the key of " + files.certificate(name).string());
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
    throw key_error(kCertificatesKey, files.revoked().string() + " is not signed by " + files.certificate(kAuthorityName).string());
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
    if (!fs::is_directory(folder)) throw key_error(kCertificatesKey, folder.string() + " is no folder; fedbits certs init creates one");
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

// Returns whether an alert says that a certificate or a name is not accepted. All others may come from a bit that was changed on the way.
bool is_about_identity(int alert) {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_UNRECOGNIZED_NAME: return true;
    default: return false;
  }
}

// Returns whether an error of OpenSSL says that the bytes of the other side are no records of TLS at all.
bool is_about_no_tls(int reason) {
  switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG: return true;
    default: return false;
  }
}

// The meaning of a broken handshake or record: the connection is lost and may be made again, or, for a server whose peer has proved nothing
// yet, the peer is refused.
enum class Broken { lost, refused };

// Throws OpenSSL's error: TlsAlert for an alert about certificates, boost::system::system_error if the connection ends, else what `broken`
// says.
[[noreturn]] void throw_reason(Broken broken) {
  const unsigned long code = ERR_get_error();
  const int reason = ERR_GET_REASON(code);
  if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) throw boost::system::system_error(asio::error::eof);
  std::string text;
  if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) {
    const int alert = reason - SSL_AD_REASON_OFFSET;
    text = std::string("the other side ends TLS: ") + SSL_alert_desc_string_long(alert);
    if (is_about_identity(alert)) throw TlsAlert(text);
  } else {
    const char* words = ERR_reason_error_string(code);
    text = std::string("TLS: ") + (words != nullptr ? words : "no reason given");
  }
  if (broken == Broken::lost) throw ConnectionLost(text);
  throw ProtocolError(text);
}

// ---- OpenSSL's access to a socket, which never waits and raises no signal

int send_bytes(BIO* bio, const char* bytes, std::size_t size, std::size_t* sent) {
  const ssize_t result = ::send(*static_cast<int*>(BIO_get_data(bio)), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  BIO_clear_retry_flags(bio);
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  *sent = result > 0 ? static_cast<std::size_t>(result) : 0;
  return result > 0 ? 1 : 0;
}

int receive_bytes(BIO* bio, char* bytes, std::size_t size, std::size_t* received) {
  const ssize_t result = ::recv(*static_cast<int*>(BIO_get_data(bio)), bytes, size, MSG_DONTWAIT);
  BIO_clear_retry_flags(bio);
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (result == 0) errno = 0;  // the other side has ended the connection
  *received = result > 0 ? static_cast<std::size_t>(result) : 0;
  return result > 0 ? 1 : 0;
}

long control_bytes(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    require_openssl(made != nullptr && BIO_meth_set_write_ex(made, send_bytes) == 1 && BIO_meth_set_read_ex(made, receive_bytes) == 1 &&
                        BIO_meth_set_ctrl(made, control_bytes) == 1,
                    "prepare sockets");
    return made;
  }();
  return method;
}

struct SessionFree {
  void operator()(SSL* session) const noexcept { SSL_free(session); }
};

// TLS on a socket. OpenSSL reads and writes the socket itself and keeps buffers only while bytes of a record are in them, so that a
// connection without traffic takes little memory.
class TlsConnection final : public Connection {
 public:
  TlsConnection(tcp::socket socket, std::shared_ptr<CredentialSource> source, const std::string& host)
      : source_(std::move(source)),
        credentials_(source_->current()),
        socket_(std::move(socket)),
        descriptor_(socket_.native_handle()),
        session_(SSL_new(credentials_->context.native_handle())),
        is_server_(host.empty()),
        trouble_(is_server_ ? source_->trouble() : "") {
    boost::system::error_code error;
    const tcp::endpoint endpoint = socket_.remote_endpoint(error);
    if (!error) remote_ = endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
    BIO* bio = BIO_new(socket_method());
    require_openssl(session_ != nullptr && bio != nullptr, "make a session");
    BIO_set_data(bio, &descriptor_);
    BIO_set_init(bio, 1);
    SSL_set_bio(session_.get(), bio, bio);
    SSL_set_mode(session_.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_read_ahead(session_.get(), 1);  // a record's header and content at once
    is_server_ ? SSL_set_accept_state(session_.get()) : SSL_set_connect_state(session_.get());
    if (!is_server_) expect_server(host);
  }

  asio::awaitable<void> handshake() override {
    if (!trouble_.empty()) throw ProtocolError(trouble_);
    co_await complete([this] { return SSL_do_handshake(session_.get()); });
    is_established_ = true;
    certificate_.reset(SSL_get1_peer_certificate(session_.get()));
    if (!certificate_) throw ProtocolError("it has no certificate");
    identity_ = is_server_ ? identity_of(*certificate_) : Identity{.name = kServerName, .clients = {}};
  }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    std::size_t bytes = 0;
    co_await complete([&] { return SSL_read_ex(session_.get(), buffer.data(), buffer.size(), &bytes); });
    co_return bytes;
  }
  // Short pieces, as a header, go into one record with what follows them.
  asio::awaitable<void> write(std::vector<asio::const_buffer> pieces) override {
    std::vector<std::byte> record;
    for (const asio::const_buffer& piece : pieces) {
      std::span left(static_cast<const std::byte*>(piece.data()), piece.size());
      while (!left.empty()) {
        const auto next = left.first(std::min(left.size(), kRecordBytes - record.size()));
        record.insert(record.end(), next.begin(), next.end());
        left = left.subspan(next.size());
        if (record.size() < kRecordBytes) continue;
        co_await write_record(record);
        record.clear();
      }
    }
    if (!record.empty()) co_await write_record(record);
  }
  asio::awaitable<void> finish() override {
    const CloseTimer timer(*this, kFarewell);
    try {
      if (is_established_) co_await complete([this] { return SSL_shutdown(session_.get()) < 0 ? -1 : 1; });
    } catch (const std::exception&) {  // the connection has ended
    }
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_await drain(socket_);
    close();
  }
  void close() noexcept override {
    descriptor_ = -1;  // which may be another connection's from now on
    boost::system::error_code ignored;
    socket_.close(ignored);
  }
  [[nodiscard]] asio::any_io_executor executor() override { return socket_.get_executor(); }
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
    X509_VERIFY_PARAM* rules = SSL_get0_param(session_.get());
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1) return;
    ERR_clear_error();
    require_openssl(X509_VERIFY_PARAM_set1_host(rules, host.c_str(), 0) == 1 && SSL_set_tlsext_host_name(session_.get(), host.c_str()) == 1,
                    "expect the server " + host);
  }

  asio::awaitable<void> write_record(const std::vector<std::byte>& record) {
    for (std::size_t at = 0; at < record.size();) {
      std::size_t bytes = 0;
      co_await complete([&] { return SSL_write_ex(session_.get(), record.data() + at, record.size() - at, &bytes); });
      at += bytes;
    }
  }

  // Repeats a step of OpenSSL, which returns 1 when it is complete, as often as the socket has bytes or room for it.
  template <class Step>
  asio::awaitable<void> complete(Step step) {
    for (;;) {
      ERR_clear_error();
      errno = 0;
      const int result = step(), system = errno;
      if (result == 1) co_return;
      switch (SSL_get_error(session_.get(), result)) {
        case SSL_ERROR_WANT_READ: co_await socket_.async_wait(tcp::socket::wait_read, asio::use_awaitable); break;
        case SSL_ERROR_WANT_WRITE: co_await socket_.async_wait(tcp::socket::wait_write, asio::use_awaitable); break;
        default: throw_end(SSL_get_error(session_.get(), result), system);
      }
    }
  }
  // A connection that ends without TLS's own end is one that ends: a session that is complete ends with a goodbye, so nothing is taken for
  // complete by this.
  [[noreturn]] void throw_end(int error, int system) {
    if (error == SSL_ERROR_ZERO_RETURN) throw boost::system::system_error(asio::error::eof);
    const bool was_established = std::exchange(is_established_, false);  // OpenSSL takes no further step
    if (error == SSL_ERROR_SYSCALL && system == 0) throw boost::system::system_error(asio::error::eof);
    if (error == SSL_ERROR_SYSCALL) throw boost::system::system_error(system, asio::error::get_system_category());
    const long verdict = SSL_get_verify_result(session_.get());
    if (!was_established && verdict != X509_V_OK)
      throw ProtocolError(std::string("its certificate is refused: ") + X509_verify_cert_error_string(verdict));
    if (!was_established && error == SSL_ERROR_SSL && is_about_no_tls(ERR_GET_REASON(ERR_peek_error()))) throw_no_tls();
    throw_reason(is_server_ && !was_established ? Broken::refused : Broken::lost);
  }

  // Sends the alert protocol_version, by which a plain peer of fedbits knows a server of TLS (FrameReader); OpenSSL sends none to bytes
  // that are no records.
  void send_alert() const {
    static constexpr std::array<unsigned char, 7> kAlert = {0x15, 0x03, 0x01, 0, 2, SSL3_AL_FATAL, SSL_AD_PROTOCOL_VERSION};
    static_cast<void>(::send(descriptor_, kAlert.data(), kAlert.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  // A peer tries again, because the first bytes may have been changed on their way.
  [[noreturn]] void throw_no_tls() const {
    if (is_server_) {
      send_alert();
      throw ProtocolError("it speaks no TLS: peers of this server join with --certs FOLDER");
    }
    throw HandshakeLost("the server answers without TLS: if it was started with --insecure, join with --insecure");
  }

  std::shared_ptr<CredentialSource> source_;
  std::shared_ptr<Credentials> credentials_;
  tcp::socket socket_;
  int descriptor_ = -1;  // of the socket while it is open
  std::unique_ptr<SSL, SessionFree> session_;
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
