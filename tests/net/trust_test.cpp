// Tests what a server can learn of the machine of a peer: the files that it has named for the server, and rows whose hashes the server
// knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "net/wire/row_hashes.hpp"
#include "tests/net/network_run.hpp"
#include "tests/net/raw_peer.hpp"
#include "tests/support/data_folder.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSecret = "31415926";  // in the file that no server may read

// The hashes that a server states of the rows.
struct Stated {
  std::uint64_t split = 0;
  std::vector<std::uint64_t> rows{};
};

// The frames that a peer has sent, and the way in which it ended.
struct Heard {
  std::vector<net::Frame> frames{};
  std::string goodbye{};  // its reason
  std::string error{};    // of the peer, which its user sees

  [[nodiscard]] bool has_ready() const {
    return std::ranges::any_of(frames, [](const net::Frame& frame) { return frame.header.has_ready(); });
  }
  // Returns all bytes that the server has received after the hello.
  [[nodiscard]] std::string bytes() const {
    std::string all;
    for (const net::Frame& frame : frames) {
      all += frame.header.SerializeAsString();
      all.append(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size());
    }
    return all;
  }
};

class Trust : public test::DataFolderTest {
 protected:
  void SetUp() override {
    DataFolderTest::SetUp();
    write("data/toy", rows(0));
    write("data/sub/toy.svm", rows(0));
    write("outside/secret.svm", rows(0) + kSecret + " 1:" + kSecret + "\n");
    write("outside/train.csv", std::string("a,label\n") + kSecret + ",1\n");
    fs::create_symlink(folder_ / "outside" / "secret.svm", folder_ / "data" / "link.svm");
    fs::create_directory_symlink(folder_ / "outside", folder_ / "data" / "linked");
    fs::create_directories(folder_ / "data" / "mixed");
    fs::create_symlink(folder_ / "outside" / "train.csv", folder_ / "data" / "mixed" / "train.csv");
  }
  // Rows of two classes with four features.
  [[nodiscard]] static std::string rows(double shift) {
    std::ostringstream text;
    text.precision(17);
    for (int r = 0; r < 40; ++r) {
      text << r % 2;
      for (int j = 0; j < 4; ++j) text << ' ' << j + 1 << ':' << std::sin(0.37 * r + 1.3 * j) + shift;
      text << '\n';
    }
    return text.str();
  }
  [[nodiscard]] static std::string scenario(const std::string& data, const std::string& more = "") {
    return "name = 'trust'\nrounds = 2\nprecision = 'float64'\n[data]\n" + data + "\n" +
           (more.find("[evaluate]") == std::string::npos ? "[evaluate]\nevery = 1\n" : "") +
           (more.find("[partition]") == std::string::npos ? "[partition]\nkind = 'shuffled'\nclients = 4\n" : "") +
           "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n" +
           (more.find("[local]") == std::string::npos ? "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n" : "") + more;
  }
  // Returns what an honest server states of the clients 0 and 1 of a scenario.
  [[nodiscard]] Stated honest(const std::string& text) const {
    ThreadPool pool(1);
    const FederatedProblem<double> problem(test::cell_of(text).scenario, DataCatalog((folder_ / "data").string()), pool);
    return {problem.split_hash(), net::stated_hashes(problem.row_hashes(), net::parse_client_ranges("0-1"))};
  }
  // Lets a peer of the clients 0 and 1 join a server that states this, and returns what the peer says to it.
  [[nodiscard]] Heard ask(const std::string& text, const Stated& stated, const std::vector<fs::path>& also_read = {}) const {
    Heard heard;
    test::RawServer server;
    std::thread peer([&] {
      try {
        net::JoinOptions options{.port = server.port(), .clients = net::parse_client_ranges("0-1"), .patience_s = 0};
        options.machine.data = (folder_ / "data").string();
        options.machine.also_read = also_read;
        static_cast<void>(net::join_server(options, {}));
      } catch (const std::exception& error) {
        heard.error = error.what();
      }
    });
    server.accept();
    EXPECT_TRUE(server.read()->header.has_hello());
    const Cell cell = test::cell_of(text);
    net::wire::Header header;
    net::wire::Assignment& assignment = *header.mutable_assignment();
    assignment.set_run(cell.hash);
    assignment.set_split(stated.split);
    assignment.set_token(std::string(16, 't'));
    assignment.add_clients()->set_last(1);
    for (const std::uint64_t hash : stated.rows) assignment.add_rows(hash);
    const auto toml = std::as_bytes(std::span(cell.resolved_toml));
    server.send(header, net::Bytes(toml.begin(), toml.end()));
    while (std::optional<net::Frame> frame = server.read()) {
      const bool is_last = frame->header.has_goodbye() || frame->header.has_ready();
      if (frame->header.has_goodbye()) heard.goodbye = frame->header.goodbye().reason();
      heard.frames.push_back(std::move(*frame));
      if (is_last) break;
    }
    server.kill();
    peer.join();
    return heard;
  }
  void expect_confined(const std::string& text) const {
    SCOPED_TRACE(text);
    const Heard heard = ask(text, {1, {2, 3}});
    EXPECT_EQ(heard.goodbye, "the scenario does not fit its data and settings; its own output says more");
    EXPECT_FALSE(heard.has_ready());
    EXPECT_THAT(heard.bytes(), Not(HasSubstr(kSecret)));
    EXPECT_THAT(heard.bytes(), Not(HasSubstr(folder_.string())));
    EXPECT_THAT(heard.error, HasSubstr("--also-read PATH allows"));
  }
  [[nodiscard]] std::string outside(const std::string& name) const { return (folder_ / "outside" / name).string(); }
};

TEST_F(Trust, NoPathOfAServerLeadsOutOfTheFolderOfData) {
  for (const std::string& data :
       {"path = '" + outside("secret.svm") + "'", std::string("path = '../outside/secret.svm'"), std::string("path = 'link.svm'"),
        std::string("path = 'sub/../../outside/secret.svm'"), std::string("path = 'linked/secret.svm'"), std::string("path = 'linked'"),
        std::string("path = 'mixed'"), "name = '" + outside("secret.svm") + "'", std::string("name = './../outside/secret.svm'"),
        std::string("name = '../outside/secret.svm'"), std::string("name = 'link.svm'"), std::string("name = 'sub/../link.svm'"),
        "name = 'toy'\ntest = '" + outside("secret.svm") + "'", std::string("name = 'toy'\ntest = 'link.svm'")})
    expect_confined(scenario(data));
}

TEST_F(Trust, NorDoesAnotherFileThatAScenarioNames) {
  const std::string secret = outside("secret.svm");
  expect_confined(scenario("name = 'toy'", "[partition]\nkind = 'file'\nclients = 4\npath = '" + secret + "'\n"));
  expect_confined(scenario("name = 'toy'", "[local]\nkind = 'gradient'\nlearning_rate = 0.1\nsample_file = '" + secret + "'\n"));
  expect_confined(scenario(
      "name = 'toy'", "[local]\nkind = 'gradient'\nlearning_rate = 0.1\nsubtract = 'optimum'\n[evaluate]\noptimum = '" + secret + "'\n"));
}

// Beside the scenario or in the working folder a server's paths are not looked for.
TEST_F(Trust, TheWorkingFolderIsNotSearched) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_ / "outside");
  const Heard heard = ask(scenario("path = 'secret.svm'"), {1, {2, 3}});
  fs::current_path(before);
  EXPECT_FALSE(heard.has_ready());
  EXPECT_THAT(heard.error, HasSubstr("there is no data file or folder \"secret.svm\""));
}

TEST_F(Trust, WhatTheUserNamesIsRead) {
  for (const std::string& data :
       {std::string("path = 'sub/toy.svm'"), std::string("name = 'toy'"), "path = '" + (folder_ / "data/toy").string() + "'"}) {
    const Heard heard = ask(scenario(data), honest(scenario(data)));
    EXPECT_TRUE(heard.has_ready()) << heard.error;
  }
  const std::string text = scenario("path = '" + outside("secret.svm") + "'");
  for (const char* also : {"outside", "outside/secret.svm"}) {
    const Heard heard = ask(text, honest(text), {folder_ / also});
    EXPECT_TRUE(heard.has_ready()) << heard.error;
  }
  EXPECT_THROW(static_cast<void>(DataCatalog::confined(folder_ / "data", {folder_ / "nothing"})), ConfigError);
}

// The texts of errors quote lines of files.
TEST_F(Trust, AServerIsToldTheKindOfAFailureAlone) {
  write("data/broken", std::string(kSecret) + " no row\n");
  const Heard heard = ask(scenario("name = 'broken'"), {1, {2, 3}});
  EXPECT_EQ(heard.goodbye, "its data cannot be read; its own output says more");
  EXPECT_THAT(heard.bytes(), Not(HasSubstr(kSecret)));
  EXPECT_THAT(heard.error, HasSubstr("broken:1"));
}

// Without a hash of the right rows no gradient, no sum and no hash leaves a peer: at the model of zeros they tell what the rows are.
TEST_F(Trust, AServerThatDoesNotKnowTheRowsIsToldNothingOfThem) {
  const std::string text = scenario("name = 'toy'");
  const Stated right = honest(text);
  ASSERT_TRUE(ask(text, right).has_ready());
  const std::string own_split(reinterpret_cast<const char*>(&right.split), sizeof right.split);
  for (const Stated& wrong : {Stated{right.split + 1, right.rows}, Stated{right.split, {right.rows[0], right.rows[1] + 1}},
                              Stated{right.split, {right.rows[0]}}, Stated{right.split, {}}, Stated{0, {}}}) {
    const Heard heard = ask(text, wrong);
    EXPECT_FALSE(heard.has_ready());
    EXPECT_THAT(heard.goodbye, AnyOf(HasSubstr("its rows are not those of the run"), HasSubstr("the server breaks the protocol")));
    EXPECT_THAT(heard.bytes(), Not(HasSubstr(own_split)));
    for (const std::uint64_t row : right.rows)
      EXPECT_THAT(heard.bytes(), Not(HasSubstr(std::string(reinterpret_cast<const char*>(&row), sizeof row))));
    EXPECT_NE(heard.error, "") << "it ends by itself";
  }
}

}  // namespace
}  // namespace fl
