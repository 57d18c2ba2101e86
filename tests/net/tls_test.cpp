// Tests connections over TLS: a run over them is the simulated one, and each way to connect without being who one claims to be is refused,
// counted by its reason, before a header is read from the connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "net/transport/tls_transport.hpp"
#include "tests/net/network_run.hpp"
#include "tests/net/tls_peer.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using test::CertificateFixture;
using test::counts_after_refusal;
using test::RawPeer;
using test::TlsRawPeer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// A server with certificates of its own.
struct TlsServer {
  CertificateFixture certificates;
  net::PeerHub hub{{.transport = net::tls_server_transport(certificates.path())}};

  [[nodiscard]] std::filesystem::path certificate(const std::string& name) const { return certificates.path() / name; }
  // Expects that one connection was refused for this reason and that no frame was read from it.
  void expect_refused_unread(const std::string& reason) const {
    const net::WireCounts counts = counts_after_refusal(hub);
    EXPECT_THAT(counts.refused, ElementsAre(Pair(reason, 1U)));
    EXPECT_EQ(counts.frames_in, 0U);
    EXPECT_EQ(counts.bytes_in, 0U);
  }
};

net::RunOffer tls_offer() { return {.run = 1, .split = 1, .scenario = std::make_shared<const net::Bytes>(), .num_clients = 7}; }

TEST(Tls, ARunOverTlsIsTheSimulatedOne) {
  const CertificateFixture certificates;
  const std::vector<test::Method> methods = test::methods();
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}, methods.size() - 1}) {
    const std::string text = test::text_of(methods.at(which), "float32");
    const test::NetworkTransports transports{.server = net::tls_server_transport(certificates.path()), .peer = [&](std::uint32_t client) {
                                               return net::tls_peer_transport(certificates.path(), "", {{client, client}});
                                             }};
    const test::NetworkRun run = test::run_over_network(text, {"0", "1", "2", "3", "4", "5", "6"}, transports);
    test::expect_same_run(text, test::run_simulated(text), run);
    EXPECT_TRUE(run.counts.refused.empty());
  }
}

TEST(Tls, AnExpiredCertificateIsRefused) {
  const TlsServer server;
  test::issue(server.certificates, "old", {.from_s = -7200, .until_s = -3600});
  TlsRawPeer peer(server.hub.port(), server.certificate("old"));
  server.expect_refused_unread("its certificate is refused: certificate has expired");
  EXPECT_THAT(peer.read_end(), HasSubstr("certificate expired"));
}

TEST(Tls, ACertificateOfTheFutureIsRefused) {
  const TlsServer server;
  test::issue(server.certificates, "new", {.from_s = 3600, .until_s = 7200});
  TlsRawPeer peer(server.hub.port(), server.certificate("new"));
  server.expect_refused_unread("its certificate is refused: certificate is not yet valid");
}

TEST(Tls, ACertificateOfAnotherAuthorityIsRefused) {
  const TlsServer server;
  const CertificateFixture others;
  TlsRawPeer peer(server.hub.port(), others.path() / "client-0");
  server.expect_refused_unread("its certificate is refused: unable to get local issuer certificate");
  EXPECT_THAT(peer.read_end(), HasSubstr("unknown ca"));
}

TEST(Tls, ASelfSignedCertificateIsRefused) {
  const TlsServer server;
  test::issue(server.certificates, "alone", {.is_self_signed = true});
  TlsRawPeer peer(server.hub.port(), server.certificate("alone"));
  server.expect_refused_unread("its certificate is refused: self-signed certificate");
}

TEST(Tls, APeerWithoutACertificateIsRefused) {
  const TlsServer server;
  TlsRawPeer peer(server.hub.port(), "");
  server.expect_refused_unread("TLS: peer did not return a certificate");
  EXPECT_THAT(peer.read_end(), HasSubstr("certificate required"));
}

TEST(Tls, ACertificateForAnotherUseIsRefused) {
  const TlsServer server;
  TlsRawPeer peer(server.hub.port(), server.certificate("server"));
  server.expect_refused_unread("its certificate is refused: unsuitable certificate purpose");
}

TEST(Tls, ACertificateThatStatesNoClientsIsRefused) {
  for (const char* names : {"DNS:client-0", "URI:urn:fedbits:clients:", "URI:urn:fedbits:clients:3-1",
                            "URI:urn:fedbits:clients:0-99999999999", "URI:urn:fedbits:clients:0,URI:urn:fedbits:clients:1"}) {
    const TlsServer server;
    test::issue(server.certificates, "vague", {.names = names});
    TlsRawPeer peer(server.hub.port(), server.certificate("vague"));
    server.expect_refused_unread("its certificate does not state its clients");
  }
}

// The certificate is right, so the hello is read; it names another client.
TEST(Tls, ACertificateSpeaksForItsOwnClientsAlone) {
  const TlsServer server;
  TlsRawPeer peer(server.hub.port(), server.certificate("client-3"));
  peer.send(RawPeer::hello("4"));
  EXPECT_EQ(peer.read_end(), "its certificate client-3 speaks for clients 3, not 4");
  EXPECT_THAT(counts_after_refusal(server.hub).refused, ElementsAre(Pair("its certificate client-3 speaks for clients 3, not 4", 1U)));
  TlsRawPeer greedy(server.hub.port(), server.certificate("client-3"));
  greedy.send(RawPeer::hello("3-4"));
  EXPECT_EQ(greedy.read_end(), "its certificate client-3 speaks for clients 3, not 3-4");
}

TEST(Tls, ASecondConnectionForOneCertificateIsRefused) {
  TlsServer server;
  test::issue(server.certificates, "both", {.names = "URI:urn:fedbits:clients:0-1"});
  TlsRawPeer first(server.hub.port(), server.certificate("both"));
  first.send(RawPeer::hello("0"));
  server.hub.begin_run(tls_offer());
  ASSERT_TRUE(first.read()->header.has_assignment());
  TlsRawPeer second(server.hub.port(), server.certificate("both"));
  second.send(RawPeer::hello("1"));
  EXPECT_EQ(second.read_end(), "another connection has the certificate clients-0-1 already");
  EXPECT_THAT(counts_after_refusal(server.hub).refused,
              ElementsAre(Pair("another connection has the certificate clients-0-1 already", 1U)));
}

// Passes the bytes of one connection on and keeps those that the peer sends.
class Recorder {
 public:
  explicit Recorder(std::uint16_t port) : acceptor_(io_, {boost::asio::ip::make_address("127.0.0.1"), 0}) {
    thread_ = std::thread([this, port] {
      boost::asio::ip::tcp::socket peer = acceptor_.accept(), server(io_);
      server.connect({boost::asio::ip::make_address("127.0.0.1"), port});
      std::thread back([&] { pass(server, peer, nullptr); });
      pass(peer, server, &recorded_);
      back.join();
    });
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  std::vector<char> recorded() {
    thread_.join();
    return recorded_;
  }

 private:
  static void pass(boost::asio::ip::tcp::socket& from, boost::asio::ip::tcp::socket& to, std::vector<char>* copy) {
    std::array<char, 4096> bytes{};
    boost::system::error_code error;
    for (;;) {
      const std::size_t count = from.read_some(boost::asio::buffer(bytes), error);
      if (error) break;
      if (copy != nullptr) copy->insert(copy->end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      boost::asio::write(to, boost::asio::buffer(bytes, count), error);
    }
    to.shutdown(boost::asio::ip::tcp::socket::shutdown_send, error);
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
  std::vector<char> recorded_;
};

TEST(Tls, ARecordedConnectionCannotBeReplayed) {
  const CertificateFixture certificates;
  std::vector<char> recorded;
  {
    net::PeerHub hub({.transport = net::tls_server_transport(certificates.path())});
    Recorder recorder(hub.port());
    {
      TlsRawPeer peer(recorder.port(), certificates.path() / "client-0");
      peer.send(RawPeer::hello("0"));
      hub.begin_run(tls_offer());
      ASSERT_TRUE(peer.read()->header.has_assignment());
    }
    recorded = recorder.recorded();
    EXPECT_EQ(hub.counts().frames_in, 1U);
    EXPECT_TRUE(hub.counts().refused.empty());
  }
  net::PeerHub hub({.transport = net::tls_server_transport(certificates.path())});
  RawPeer peer(hub.port());
  peer.write(std::as_bytes(std::span(recorded)));
  const net::WireCounts counts = counts_after_refusal(hub);
  EXPECT_THAT(counts.refused, ElementsAre(Pair("TLS: decryption failed or bad record mac", 1U)));
  EXPECT_EQ(counts.frames_in, 0U);
}

TEST(Tls, OlderVersionsOfTlsAreRefused) {
  for (const int version : {TLS1_1_VERSION, TLS1_2_VERSION}) {
    const TlsServer server;
    TlsRawPeer peer(server.hub.port(), server.certificate("client-0"), version);
    server.expect_refused_unread("TLS: unsupported protocol");
    EXPECT_THAT(peer.handshake_error(), HasSubstr("alert protocol version"));
  }
}

TEST(Tls, AHandshakeThatEndsEarlyIsRefused) {
  const TlsServer server;
  {
    RawPeer peer(server.hub.port());
    peer.write(std::as_bytes(std::span("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)));  // the first bytes of a greeting of TLS
  }
  server.expect_refused_unread("it leaves during the handshake: End of file");
}

TEST(Tls, AHandshakeHasATimeLimit) {
  const CertificateFixture certificates;
  const net::PeerHub hub({.transport = net::tls_server_transport(certificates.path()), .handshake_limit = std::chrono::milliseconds(200)});
  RawPeer silent(hub.port());
  EXPECT_THAT(counts_after_refusal(hub).refused, ElementsAre(Pair("its handshake is not complete after 200 ms", 1U)));
  EXPECT_FALSE(silent.read().has_value()) << "the connection is closed";
}

TEST(Tls, PlainBytesToAServerWithTlsAreRefused) {
  const TlsServer server;
  RawPeer peer(server.hub.port());
  peer.say_hello("0");
  server.expect_refused_unread("it speaks no TLS: peers of this server join with --certs FOLDER");
}

// Both sides say what is wrong, and the peer does not wait for its patience to end.
TEST(Tls, APlainPeerOfAServerWithTlsIsToldOfCertificates) {
  const TlsServer server;
  std::string why;
  try {
    static_cast<void>(net::join_server({.port = server.hub.port(), .clients = net::parse_client_ranges("0")}, {}));
  } catch (const std::exception& error) {
    why = error.what();
  }
  EXPECT_THAT(why, HasSubstr("the server speaks TLS: join it with --certs FOLDER"));
}

TEST(Tls, APeerWithCertificatesOfAPlainServerIsToldOfPlainTcp) {
  const CertificateFixture certificates;
  const net::PeerHub hub({});
  const std::vector<net::ClientRange> clients = net::parse_client_ranges("0");
  std::string said;
  EXPECT_ANY_THROW(static_cast<void>(net::join_server(
      {.port = hub.port(), .clients = clients, .patience_s = 0.2, .transport = net::tls_peer_transport(certificates.path(), "", clients)},
      {.say = [&said](const std::string& text) { said += text + "\n"; }})));
  EXPECT_THAT(said, HasSubstr("the server answers without TLS: if it was started with --insecure, join with --insecure"));
}

TEST(Tls, TlsToAPlainServerIsRefusedByItsFirstBytes) {
  const CertificateFixture certificates;
  const net::PeerHub hub({});
  TlsRawPeer peer(hub.port(), certificates.path() / "client-0");
  EXPECT_NE(peer.handshake_error(), "");
  const net::WireCounts counts = counts_after_refusal(hub);
  ASSERT_EQ(counts.refused.size(), 1U);
  EXPECT_EQ(counts.refused.begin()->first, "it speaks TLS, and this server does not: join with --insecure, or serve with --certs");
  EXPECT_EQ(counts.frames_in, 0U);
}

std::string tls_join_error(std::uint16_t port, const std::string& host, const std::filesystem::path& certificates) {
  const std::vector<net::ClientRange> clients = net::parse_client_ranges("0");
  try {
    static_cast<void>(net::join_server(
        {.host = host, .port = port, .clients = clients, .transport = net::tls_peer_transport(certificates, "", clients)}, {}));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Tls, APeerRefusesAServerOfAnotherName) {
  const CertificateFixture certificates({"server.example", "192.0.2.1"});
  const net::PeerHub hub({.transport = net::tls_server_transport(certificates.path())});
  EXPECT_THAT(tls_join_error(hub.port(), "127.0.0.1", certificates.path()), HasSubstr("its certificate is refused: IP address mismatch"));
  EXPECT_THAT(counts_after_refusal(hub).refused, ElementsAre(Pair("the other side ends TLS: bad certificate", 1U)));
  EXPECT_THAT(tls_join_error(hub.port(), "localhost", certificates.path()), HasSubstr("its certificate is refused: hostname mismatch"));
  EXPECT_EQ(hub.counts().frames_in, 0U);
}

TEST(Tls, APeerRefusesAServerOfAnotherAuthority) {
  const CertificateFixture certificates, others;
  const net::PeerHub hub({.transport = net::tls_server_transport(certificates.path())});
  EXPECT_THAT(tls_join_error(hub.port(), "127.0.0.1", others.path()),
              HasSubstr("its certificate is refused: self-signed certificate in certificate chain"));
  EXPECT_EQ(counts_after_refusal(hub).frames_in, 0U);
}

// A peer has a certificate of the same authority, but is no server.
TEST(Tls, APeerRefusesAnotherPeerInTheServersPlace) {
  const CertificateFixture certificates;
  const std::filesystem::path stolen = certificates.path() / "stolen";
  std::filesystem::create_directory(stolen);
  for (const std::string file : {"ca.pem", "revoked.pem"}) std::filesystem::copy(certificates.path() / file, stolen / file);
  for (const std::string kind : {".pem", ".key"})
    std::filesystem::copy(certificates.path() / ("client-3" + kind), stolen / ("server" + kind));
  const net::PeerHub hub({.transport = net::tls_server_transport(stolen)});
  EXPECT_THAT(tls_join_error(hub.port(), "127.0.0.1", certificates.path()),
              HasSubstr("its certificate is refused: unsuitable certificate purpose"));
}

TEST(Tls, ARevokedCertificateIsRefusedWithoutARestart) {
  TlsServer server;
  server.hub.begin_run(tls_offer());
  {
    TlsRawPeer peer(server.hub.port(), server.certificate("client-0"));
    peer.send(RawPeer::hello("0"));
    ASSERT_TRUE(peer.read()->header.has_assignment());
  }
  net::revoke_certificate(server.certificates.path(), "client-0");
  TlsRawPeer peer(server.hub.port(), server.certificate("client-0"));
  EXPECT_THAT(counts_after_refusal(server.hub).refused, ElementsAre(Pair("its certificate is refused: certificate revoked", 1U)));
  EXPECT_EQ(server.hub.counts().frames_in, 1U) << "the hello before";
  EXPECT_THAT(peer.read_end(), HasSubstr("certificate revoked"));
  EXPECT_THAT(tls_join_error(server.hub.port(), "127.0.0.1", server.certificates.path()),
              HasSubstr("refuses this connection: the other side ends TLS: certificate revoked"));
  TlsRawPeer other(server.hub.port(), server.certificate("client-1"));
  other.send(RawPeer::hello("1"));
  EXPECT_TRUE(other.read()->header.has_assignment()) << "others are not concerned";
}

TEST(Tls, APeerWhoseCertificateIsRevokedIsDisconnected) {
  TlsServer server;
  server.hub.begin_run(tls_offer());
  TlsRawPeer peer(server.hub.port(), server.certificate("client-0"));
  peer.send(RawPeer::hello("0"));
  ASSERT_TRUE(peer.read()->header.has_assignment());
  net::revoke_certificate(server.certificates.path(), "client-0");
  EXPECT_EQ(peer.read_end(), "its certificate client-0 is revoked");
  EXPECT_THAT(counts_after_refusal(server.hub).refused, ElementsAre(Pair("its certificate client-0 is revoked", 1U)));
}

// A server and its peers read their own pairs again when they change. The run goes on, and the old pair of the peer is of no use any more.
TEST(Tls, ARenewedPairOfServerAndPeerIsUsedWithoutARestart) {
  TlsServer server;
  server.hub.begin_run(tls_offer());
  const std::filesystem::path copies = server.certificates.path() / "copies";
  std::filesystem::create_directory(copies);
  for (const std::string kind : {".pem", ".key"})
    std::filesystem::copy(server.certificate("client-0").string() + kind, copies / ("client-0" + kind));
  const auto transport = net::tls_peer_transport(server.certificates.path(), "client-0", {{0, 0}});
  const auto serial_seen = [&] {
    TlsRawPeer peer(server.hub.port(), server.certificate("client-1"));
    return peer.serial_of_server();
  };
  const std::string before = serial_seen();
  static_cast<void>(net::renew_certificate({.folder = server.certificates.path(), .name = "server", .revokes_old = true}));
  EXPECT_NE(serial_seen(), before);
  static_cast<void>(net::renew_certificate({.folder = server.certificates.path(), .name = "client-0", .revokes_old = true}));
  {
    TlsRawPeer old(server.hub.port(), copies / "client-0");
    EXPECT_THAT(old.read_end(), HasSubstr("certificate revoked"));
  }
  std::atomic<bool> is_there = false;
  std::thread peer([&] {
    try {
      static_cast<void>(
          net::join_server({.port = server.hub.port(), .clients = {{0, 0}}, .patience_s = 5, .transport = transport},
                           {.tell = [](const net::JoinEvent&) {}, .say = [](const std::string&) {}, .goes_on = [&] { return !is_there; }}));
    } catch (const std::exception&) {  // the scenario of the offer is none
    }
  });
  for (int i = 0; i < 2000 && server.hub.counts().frames_out == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GT(server.hub.counts().frames_out, 0U) << "a peer that was made before the renewal is assigned its clients";
  is_there = true;
  peer.join();
}

TEST(Tls, ARenewedCertificateLeavesTheOldOneValid) {
  TlsServer server;
  server.hub.begin_run(tls_offer());
  const std::filesystem::path copy = server.certificates.path() / "copy";
  for (const std::string kind : {".pem", ".key"})
    std::filesystem::copy(server.certificate("client-0").string() + kind, copy.string() + kind);
  static_cast<void>(net::renew_certificate({.folder = server.certificates.path(), .name = "client-0"}));
  for (const std::filesystem::path& pair : {copy, server.certificate("client-0")}) {
    TlsRawPeer peer(server.hub.port(), pair);
    peer.send(RawPeer::hello("0"));
    const std::optional<net::Frame> answer = peer.read();
    ASSERT_TRUE(answer.has_value()) << pair;
    EXPECT_TRUE(answer->header.has_assignment()) << pair;
  }
}

// Between the two files of a pair, the server goes on with the pair before.
TEST(Tls, AKeyThatDoesNotFitYetLeavesTheOldPairInUse) {
  TlsServer server;
  server.hub.begin_run(tls_offer());
  const std::filesystem::path key = server.certificates.files().key("server");
  std::filesystem::rename(key, key.string() + ".kept");
  std::filesystem::copy(server.certificates.files().key("client-1"), key);
  TlsRawPeer peer(server.hub.port(), server.certificate("client-0"));
  peer.send(RawPeer::hello("0"));
  ASSERT_TRUE(peer.read()->header.has_assignment());
  net::revoke_certificate(server.certificates.path(), "client-2");
  TlsRawPeer refused(server.hub.port(), server.certificate("client-3"));
  EXPECT_THAT(counts_after_refusal(server.hub).refused, ElementsAre(Pair("the list of revoked certificates cannot be used now", 1U)));
}

// A peer that lost its connection is back before the server knows: the token proves that it is the same one.
TEST(Tls, ASecondConnectionWithTheTokenReplacesTheFirst) {
  TlsServer server;
  server.hub.begin_run(tls_offer());
  TlsRawPeer first(server.hub.port(), server.certificate("client-0"));
  first.send(RawPeer::hello("0"));
  const std::optional<net::Frame> assignment = first.read();
  ASSERT_TRUE(assignment && assignment->header.has_assignment());
  net::wire::Header ready;
  ready.mutable_ready()->set_run(1);
  ready.mutable_ready()->set_split(1);
  first.send(ready);
  for (int i = 0; i < 2000 && server.hub.attendance().num_hosted == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  net::wire::Header again = RawPeer::hello("0");
  again.mutable_hello()->set_token(assignment->header.assignment().token());
  TlsRawPeer second(server.hub.port(), server.certificate("client-0"));
  second.send(again);
  const std::optional<net::Frame> answer = second.read();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->header.has_assignment());
  EXPECT_NE(first.read_end(), "") << "the first connection is closed";
  EXPECT_TRUE(server.hub.counts().refused.empty());
}

// A token that was stolen is of no use with another certificate.
TEST(Tls, ATokenDoesNotReplaceACertificate) {
  TlsServer server;
  server.hub.begin_run(tls_offer());
  TlsRawPeer owner(server.hub.port(), server.certificate("client-0"));
  owner.send(RawPeer::hello("0"));
  const std::optional<net::Frame> assignment = owner.read();
  ASSERT_TRUE(assignment && assignment->header.has_assignment());
  net::wire::Header stolen = RawPeer::hello("0");
  stolen.mutable_hello()->set_token(assignment->header.assignment().token());
  TlsRawPeer thief(server.hub.port(), server.certificate("client-1"));
  thief.send(stolen);
  EXPECT_EQ(thief.read_end(), "its certificate client-1 speaks for clients 1, not 0");
}

TEST(Tls, NobodyIsAcceptedWhileTheListOfRevokedCertificatesCannotBeRead) {
  TlsServer server;
  server.hub.begin_run(tls_offer());
  const std::filesystem::path list = server.certificates.files().revoked(), kept = list.string() + ".kept";
  std::filesystem::rename(list, kept);
  std::ofstream(list) << "nothing of the kind";
  TlsRawPeer refused(server.hub.port(), server.certificate("client-0"));
  server.expect_refused_unread("the list of revoked certificates cannot be used now");
  std::filesystem::rename(kept, list);
  TlsRawPeer peer(server.hub.port(), server.certificate("client-0"));
  peer.send(RawPeer::hello("0"));
  EXPECT_TRUE(peer.read()->header.has_assignment());
}

}  // namespace
}  // namespace fl
