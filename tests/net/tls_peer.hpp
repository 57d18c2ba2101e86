// Certificates and connections that `fedbits certs` and `fedbits join` do not make: for tests of what a server refuses.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "net/server/peer_hub.hpp"
#include "net/transport/certificate_authority.hpp"
#include "net/transport/tls_files.hpp"
#include "net/wire/frame.hpp"
#include "tests/net/raw_peer.hpp"

namespace fl::test {

// A folder that is removed at the end of the test.
class CertificateFixture {
 public:
  // Certifies clients 0-6 one by one, and the server as this machine.
  explicit CertificateFixture(const std::vector<std::string>& server = {"127.0.0.1"}) {
    std::string text = (std::filesystem::temp_directory_path() / "fedbits-certs-XXXXXX").string();
    if (::mkdtemp(text.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = text;
    static_cast<void>(net::create_authority({.folder = path_, .num_clients = 7, .server = server}));
  }
  ~CertificateFixture() { std::filesystem::remove_all(path_); }
  CertificateFixture(const CertificateFixture&) = delete;
  CertificateFixture& operator=(const CertificateFixture&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] net::CertificateFolder files() const { return {path_}; }

 private:
  std::filesystem::path path_;
};

struct IssueOptions {
  long from_s = -3600, until_s = 3600;  // validity, from now on
  std::string use = "clientAuth";
  std::string names = "URI:urn:fedbits:clients:0";
  bool is_self_signed = false;
};

// Writes NAME.pem and NAME.key into a folder, signed by its authority.
inline void issue(const CertificateFixture& folder, const std::string& name, const IssueOptions& options) {
  const net::Certificate authority = net::read_certificate(folder.files().certificate("ca")), made(X509_new());
  const net::PrivateKey authority_key = net::read_key(folder.files().key("ca")), key(EVP_EC_gen("P-256"));
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 7);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), options.from_s);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), options.until_s);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()),
                             -1, -1, 0);
  X509& issuer = options.is_self_signed ? *made : *authority;
  X509_set_issuer_name(made.get(), X509_get_subject_name(&issuer));
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, made.get(), nullptr, nullptr, 0);
  const auto extend = [&](int kind, const std::string& value) {
    const net::Openssl<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
    ASSERT_EQ(X509_add_ext(made.get(), extension.get(), -1), 1) << value;
  };
  extend(NID_basic_constraints, "critical,CA:FALSE");
  extend(NID_key_usage, "critical,digitalSignature");
  extend(NID_ext_key_usage, options.use);
  extend(NID_subject_key_identifier, "hash");
  extend(NID_authority_key_identifier, "keyid:always");
  extend(NID_subject_alt_name, options.names);
  ASSERT_GT(X509_sign(made.get(), options.is_self_signed ? key.get() : authority_key.get(), EVP_sha256()), 0);
  net::write_certificate(folder.files().certificate(name), made);
  net::write_key(folder.files().key(name), key);
}

// A client of TLS that presents what a test says and trusts every server.
class TlsRawPeer {
 public:
  // `certificate` = path without its suffix; "" = none. `version` = the only one that it speaks.
  TlsRawPeer(std::uint16_t port, const std::filesystem::path& certificate, int version = TLS1_3_VERSION)
      : context_(boost::asio::ssl::context::tls_client), stream_(io_, prepare(context_, certificate, version)) {
    stream_.next_layer().connect({boost::asio::ip::make_address("127.0.0.1"), port});
    stream_.handshake(boost::asio::ssl::stream_base::client, error_);
  }

  // Why the handshake failed on this side; "" = it did not.
  [[nodiscard]] std::string handshake_error() const { return error_ ? error_.message() : ""; }
  // Returns the serial number of the server's certificate.
  [[nodiscard]] std::string serial_of_server() {
    const net::Certificate shown(SSL_get1_peer_certificate(stream_.native_handle()));
    return shown ? net::serial_text(*shown) : "";
  }
  void send(const net::wire::Header& header) { boost::asio::write(stream_, boost::asio::buffer(net::make_frame(header).head), error_); }
  // The next frame; nothing where the server has closed the connection.
  std::optional<net::Frame> read() {
    std::array<std::byte, net::kPrefixBytes> prefix{};
    boost::asio::read(stream_, boost::asio::buffer(prefix), error_);
    if (error_) return std::nullopt;
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < net::kSizesBytes; ++i) word |= std::to_integer<std::uint64_t>(prefix[i]) << (8 * i);
    net::Bytes head(word & 0xffffffu), payload(word >> 24);
    boost::asio::read(stream_, boost::asio::buffer(head), error_);
    boost::asio::read(stream_, boost::asio::buffer(payload), error_);
    if (error_) return std::nullopt;
    return net::Frame{.header = net::parse_header(head), .payload = net::ReceivedBytes(payload)};
  }
  // The reason of the goodbye that comes next, other frames left out; else the error with which the connection ended.
  std::string read_end() {
    while (const std::optional<net::Frame> frame = read())
      if (frame->header.has_goodbye()) return frame->header.goodbye().reason();
    return error_.message();
  }

 private:
  static boost::asio::ssl::context& prepare(boost::asio::ssl::context& context, const std::filesystem::path& certificate, int version) {
    SSL_CTX_set_cipher_list(context.native_handle(), "DEFAULT:@SECLEVEL=0");  // so that old versions can be tried at all
    SSL_CTX_set_min_proto_version(context.native_handle(), version);
    SSL_CTX_set_max_proto_version(context.native_handle(), version);
    if (certificate.empty()) return context;
    context.use_certificate_file(certificate.string() + ".pem", boost::asio::ssl::context::pem);
    context.use_private_key_file(certificate.string() + ".key", boost::asio::ssl::context::pem);
    return context;
  }

  boost::asio::io_context io_;
  boost::asio::ssl::context context_;
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_;
  boost::system::error_code error_;
};

// Waits until the hub has refused something, and returns its counts.
inline net::WireCounts counts_after_refusal(const net::PeerHub& hub) {
  for (int i = 0; i < 2000 && hub.counts().refused.empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return hub.counts();
}

}  // namespace fl::test
