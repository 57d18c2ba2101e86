// Tests the folder of certificates: what is written, who may read it, and which folders are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "fl_core/config/error.hpp"
#include "net/transport/tls_transport.hpp"
#include "tests/net/tls_peer.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::CertificateFixture;
using testing::HasSubstr;

template <class F>
std::string certificate_error(const F& f) {
  try {
    f();
  } catch (const ConfigError& error) {
    return error.problems().front().where + ": " + error.problems().front().message;
  }
  return "";
}

TEST(Certificates, AFolderHasAServerAndEveryClientAndIsPrivate) {
  const CertificateFixture certificates;
  const fs::path folder = certificates.path() / "groups";
  EXPECT_THAT(net::create_authority({.folder = folder, .num_clients = 25, .per_peer = 10}),
              testing::ElementsAre("clients-0-9", "clients-10-19", "clients-20-24"));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  std::size_t files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << entry;
    ++files;
  }
  EXPECT_EQ(files, 2U * 5 + 2) << "a key and a certificate each, the list of revoked ones, and a file for git";
  std::ifstream git(folder / ".gitignore");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(git), {}), "*\n") << "git adds no key";
  const std::vector<net::CertificateInfo> list = net::list_certificates(folder);
  ASSERT_EQ(list.size(), 5U);
  EXPECT_EQ(list[0].name + " " + list[1].name + " " + list[4].name, "ca server clients-20-24");
  EXPECT_EQ(to_text(list[4].clients), "20-24");
  std::set<std::string> serials;
  for (const net::CertificateInfo& info : list) {
    EXPECT_GE(info.serial.size(), 39U) << "159 random bits";
    EXPECT_FALSE(info.is_revoked || info.is_expired);
    serials.insert(info.serial);
  }
  EXPECT_EQ(serials.size(), 5U);
}

TEST(Certificates, NothingIsOverwritten) {
  const CertificateFixture certificates;
  const auto bytes = [&] {
    std::ifstream file(certificates.files().key("ca"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = bytes();
  EXPECT_THAT(certificate_error([&] { static_cast<void>(net::create_authority({.folder = certificates.path(), .num_clients = 1})); }),
              HasSubstr("exists and is not overwritten"));
  EXPECT_EQ(bytes(), before);
}

TEST(Certificates, RequestsThatCannotBeMetLeaveNothingBehind) {
  const CertificateFixture certificates;
  const fs::path folder = certificates.path() / "new";
  const auto error_of = [&](net::AuthorityRequest request) {
    request.folder = folder;
    return certificate_error([&] { static_cast<void>(net::create_authority(request)); });
  };
  EXPECT_EQ(error_of({.num_clients = 0}), "--clients: must be at least 1");
  EXPECT_EQ(error_of({.num_clients = 1, .per_peer = 0}), "--per-peer: must be at least 1");
  EXPECT_EQ(error_of({.num_clients = 1, .days = 0}), "--days: must be from 1 to 825, is 0");
  EXPECT_THAT(error_of({.num_clients = 200'000}), HasSubstr("more than 100000 certificates; --per-peer"));
  EXPECT_EQ(error_of({.num_clients = 1, .server = {"a,DNS:b"}}), "--server: must be a host name or an address, is 'a,DNS:b'");
  EXPECT_FALSE(fs::exists(folder));
  for (const fs::directory_entry& entry : fs::directory_iterator(certificates.path())) EXPECT_FALSE(entry.is_directory()) << entry;
}

TEST(Certificates, RevokingIsListedAndCannotBeRepeated) {
  const CertificateFixture certificates;
  net::revoke_certificate(certificates.path(), "client-2");
  net::revoke_certificate(certificates.path(), "client-5");
  for (const net::CertificateInfo& info : net::list_certificates(certificates.path()))
    EXPECT_EQ(info.is_revoked, info.name == "client-2" || info.name == "client-5") << info.name;
  const auto error_of = [&](const std::string& name) {
    return certificate_error([&] { net::revoke_certificate(certificates.path(), name); });
  };
  EXPECT_EQ(error_of("client-2"), "NAME: the certificate client-2 is revoked already");
  EXPECT_THAT(error_of("client-7"), HasSubstr("there is no certificate client-7"));
  EXPECT_THAT(error_of("../client-3"), HasSubstr("there is no certificate ../client-3"));
  EXPECT_THAT(error_of("ca"), HasSubstr("cannot revoke itself"));
  EXPECT_EQ(fs::status(certificates.files().revoked()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Certificates, ARenewedOneIsForTheSameClientsAndHasAnotherKey) {
  const CertificateFixture certificates;
  const auto info_of = [&](const std::string& name) {
    for (const net::CertificateInfo& info : net::list_certificates(certificates.path()))
      if (info.name == name) return info;
    return net::CertificateInfo{};
  };
  const auto bytes_of = [](const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_THAT(info_of("client-3").days_left, testing::AnyOf(net::kUsualDays - 1, net::kUsualDays));  // the second may be the same
  EXPECT_THAT(info_of("ca").days_left, testing::AnyOf(net::kMostDays - 1, net::kMostDays));
  for (const std::string name : {"client-3", "server"}) {
    const net::CertificateInfo before = info_of(name);
    const std::string key = bytes_of(certificates.files().key(name));
    const std::string end = net::renew_certificate({.folder = certificates.path(), .name = name, .days = 200});
    const net::CertificateInfo after = info_of(name);
    EXPECT_EQ(to_text(after.clients), to_text(before.clients));
    EXPECT_NE(after.serial, before.serial);
    EXPECT_EQ(after.valid_until, end);
    EXPECT_THAT(after.days_left, testing::AnyOf(199, 200));
    EXPECT_FALSE(after.is_revoked);
    EXPECT_NE(bytes_of(certificates.files().key(name)), key);
    for (const fs::path& file : {certificates.files().key(name), certificates.files().certificate(name)})
      EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write) << file;
  }
  static_cast<void>(net::tls_server_transport(certificates.path()));  // the key fits the certificate
  for (const fs::directory_entry& entry : fs::directory_iterator(certificates.path())) EXPECT_FALSE(entry.is_directory()) << entry;
}

// None is valid for longer than its authority, which would end it.
TEST(Certificates, ARenewedOneEndsWithItsAuthorityAtTheLatest) {
  const CertificateFixture certificates;
  const std::time_t later = std::time(nullptr) + 800L * 24 * 3600;
  static_cast<void>(net::renew_certificate({.folder = certificates.path(), .name = "client-0", .now = later}));
  const std::vector<net::CertificateInfo> list = net::list_certificates(certificates.path());
  EXPECT_EQ(list[2].valid_until, list[0].valid_until);
}

TEST(Certificates, RenewalsThatCannotBeMadeChangeNothing) {
  const CertificateFixture certificates;
  const auto error_of = [&](const std::string& name, int days = 90) {
    return certificate_error(
        [&] { static_cast<void>(net::renew_certificate({.folder = certificates.path(), .name = name, .days = days})); });
  };
  EXPECT_THAT(error_of("client-7"), HasSubstr("there is no certificate client-7"));
  EXPECT_THAT(error_of("ca"), HasSubstr("cannot renew itself"));
  EXPECT_EQ(error_of("client-0", 0), "--days: must be from 1 to 825, is 0");
  fs::rename(certificates.files().key("ca"), certificates.path() / "elsewhere");
  EXPECT_THAT(error_of("client-0"), HasSubstr("cannot read"));
  static_cast<void>(net::tls_peer_transport(certificates.path(), "client-0", {{0, 0}}));
}

TEST(Certificates, AServerRefusesFilesThatAreNotItsOwn) {
  const CertificateFixture certificates, others;
  const auto server_error = [&] { return certificate_error([&] { static_cast<void>(net::tls_server_transport(certificates.path())); }); };
  EXPECT_EQ(server_error(), "");
  fs::permissions(certificates.files().key("server"), fs::perms::group_read, fs::perm_options::add);
  EXPECT_THAT(server_error(), HasSubstr("other users can access the key"));
  fs::copy(others.files().key("server"), certificates.files().key("server"), fs::copy_options::overwrite_existing);
  fs::permissions(certificates.files().key("server"), fs::perms::owner_read);
  EXPECT_THAT(server_error(), HasSubstr("server.key is not the key of"));
  fs::copy(others.files().certificate("server"), certificates.files().certificate("server"), fs::copy_options::overwrite_existing);
  EXPECT_EQ(server_error(), "") << "a pair, which no peer of this authority accepts";
  fs::copy(others.files().revoked(), certificates.files().revoked(), fs::copy_options::overwrite_existing);
  EXPECT_THAT(server_error(), HasSubstr("revoked.pem is not signed by"));
  fs::remove(certificates.files().revoked());
  EXPECT_THAT(server_error(), HasSubstr("cannot read"));
}

TEST(Certificates, APeerFindsTheCertificateForItsClients) {
  const CertificateFixture certificates;
  test::issue(certificates, "some", {.names = "URI:urn:fedbits:clients:0-3"});
  test::issue(certificates, "all", {.names = "URI:urn:fedbits:clients:0-6"});
  const auto peer_error = [&](const std::string& identity, const std::string& clients) {
    return certificate_error(
        [&] { static_cast<void>(net::tls_peer_transport(certificates.path(), identity, net::parse_client_ranges(clients))); });
  };
  EXPECT_EQ(peer_error("", "3"), "");
  EXPECT_EQ(peer_error("", "1-2"), "");
  EXPECT_EQ(peer_error("all", "1,4"), "");
  EXPECT_EQ(peer_error("some", "2-4"), "--identity: the certificate some is for clients 0-3, not for 2-4");
  EXPECT_EQ(peer_error("server", "1"), "--identity: the certificate server is for no clients, not for 1");
  EXPECT_THAT(peer_error("", "6-7"), HasSubstr("is for clients 6-7; it has all, some, client-0"));
}

}  // namespace
}  // namespace fl
