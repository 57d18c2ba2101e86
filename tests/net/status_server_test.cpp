// Tests the HTTP server of the status: its routes, requests that are wrong, too long or too slow, and many connections at once.
#include "status/status_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "fl_core/config/error.hpp"
#include "status/status_page.hpp"
#include "tests/net/http_client.hpp"

namespace fl {
namespace {

using net::StatusOptions;
using net::StatusServer;
using test::HttpConnection;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

net::StatusRoutes counted_routes(std::atomic<int>& made) {
  net::StatusRoutes routes = net::page_routes();
  routes["/status.json"] = {net::kJsonType, [&made] { return "{\"made\":" + std::to_string(++made) + "}"; }, true};
  return routes;
}

class StatusHttp : public testing::Test {
 protected:
  explicit StatusHttp(const StatusOptions& options = {}) : server_(options, counted_routes(made_)), port_(server_.port()) {
    server_.start();
  }
  std::string ask(const std::string& request) const { return test::answer_to(port_, request); }

  std::atomic<int> made_ = 0;
  StatusServer server_;
  std::uint16_t port_;
};

TEST_F(StatusHttp, EveryRouteAnswers) {
  const std::string page = test::get(port_, "/");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self';"));
  EXPECT_THAT(page, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(page, HasSubstr("<script src=\"status.js\">"));
  EXPECT_THAT(test::get(port_, "/status.css"), HasSubstr(".toolbar"));
  EXPECT_THAT(test::get(port_, "/status.js"), HasSubstr("class ServePage"));
  const std::string status = test::get(port_, "/status.json?again");
  EXPECT_THAT(status, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(status, HasSubstr("Cache-Control: no-store\r\n"));
  EXPECT_EQ(test::body_of(status), "{\"made\":1}");
}

// No address of another machine is in what the page consists of.
TEST_F(StatusHttp, ThePageAsksNobodyElse) {
  for (const char* path : {"/", "/status.css", "/status.js"})
    for (const char* outside : {"https://", "//fonts", "@import", "url(", "http://www.w3.org/1999"})
      EXPECT_THAT(test::body_of(test::get(port_, path)), Not(HasSubstr(outside))) << path;
}

TEST_F(StatusHttp, HeadHasTheHeadersAlone) {
  const std::string whole = ask(test::request_of("GET", "/status.css")), head = ask(test::request_of("HEAD", "/status.css"));
  EXPECT_EQ(test::body_of(head), "");
  EXPECT_EQ(head, whole.substr(0, whole.size() - test::body_of(whole).size()));
}

TEST_F(StatusHttp, OtherMethodsPathsAndContentsAreRefused) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "BREW"}) {
    const std::string answer = ask(test::request_of(method, "/"));
    EXPECT_THAT(answer, testing::AnyOf(StartsWith("HTTP/1.1 405 "), StartsWith("HTTP/1.1 400 "))) << method;
    if (answer.find(" 405 ") != std::string::npos) {
      EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD\r\n"));
    }
  }
  for (const char* path :
       {"/nothing", "/../etc/passwd", "/..%2f..%2fetc/passwd", "//status.json", "/status.json/", "/%00", "*", "/status.css/../status.js"})
    EXPECT_THAT(ask(test::request_of("GET", path)), StartsWith("HTTP/1.1 404 ")) << path;
  EXPECT_THAT(ask(test::request_of("GET", "/", "Content-Length: 5\r\n") + "hello"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask(test::request_of("GET", "/", "Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(std::string(64, '\0') + "\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(test::get(port_, "/"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(StatusHttp, LongRequestsAreRefused) {
  EXPECT_THAT(ask(test::request_of("GET", "/" + std::string(2000, 'a'))), StartsWith("HTTP/1.1 414 "));
  EXPECT_THAT(ask(test::request_of("GET", "/", "X-Long: " + std::string(20000, 'a') + "\r\n")), StartsWith("HTTP/1.1 431 "));
  std::string many;
  for (int i = 0; i < 3000; ++i) many += "X-" + std::to_string(i) + ": a\r\n";
  EXPECT_THAT(ask(test::request_of("GET", "/", many)), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(test::get(port_, "/"), StartsWith("HTTP/1.1 200 "));
}

// A page of another site whose name leads to this machine must not read the state.
TEST_F(StatusHttp, OnlyNamesOfThisMachineAreAnswered) {
  for (const char* host : {"127.0.0.1:7000", "localhost", "localhost:80", "[::1]:7000"})
    EXPECT_THAT(ask("GET / HTTP/1.1\r\nConnection: close\r\nHost: " + std::string(host) + "\r\n\r\n"), StartsWith("HTTP/1.1 200 ")) << host;
  for (const char* host : {"example.org", "127.0.0.1.example.org", "localhost.example.org:80", "127.0.0.1@example.org", ""})
    EXPECT_THAT(ask("GET /status.json HTTP/1.1\r\nConnection: close\r\nHost: " + std::string(host) + "\r\n\r\n"),
                StartsWith("HTTP/1.1 421 "))
        << host;
  EXPECT_THAT(ask("GET /status.json HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(ask("GET /status.json HTTP/1.0\r\nHost: example.org\r\n\r\n"), StartsWith("HTTP/1.0 421 "));
  EXPECT_THAT(ask("GET /status.json HTTP/1.0\r\nHost: localhost\r\n\r\n"), StartsWith("HTTP/1.0 200 "));
}

TEST_F(StatusHttp, AConnectionAnswersSeveralRequests) {
  HttpConnection connection(port_);
  for (int i = 0; i < 5; ++i) {
    connection.write("GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(connection.read_until("}"), HasSubstr("200 OK"));
  }
}

// However many ask, the state is made once in a while.
TEST_F(StatusHttp, TheStateIsNotMadeForEachRequest) {
  for (int i = 0; i < 40; ++i) EXPECT_THAT(test::get(port_, "/status.json"), HasSubstr("\"made\""));
  EXPECT_LT(made_, 40);
}

TEST_F(StatusHttp, TwoHundredConnectionsAtOnceAreAnswered) {
  std::vector<std::unique_ptr<HttpConnection>> connections;
  for (int i = 0; i < 200; ++i) connections.push_back(std::make_unique<HttpConnection>(port_));
  for (const auto& connection : connections) connection->write(test::request_of("GET", "/status.js"));
  for (const auto& connection : connections) EXPECT_THAT(connection->read_all(), StartsWith("HTTP/1.1 200 "));
}

class ImpatientHttp : public StatusHttp {
 protected:
  ImpatientHttp()
      : StatusHttp({.most_connections = 4,
                    .request_limit = std::chrono::milliseconds(300),
                    .idle_limit = std::chrono::milliseconds(300),
                    .answer_limit = std::chrono::milliseconds(300)}) {}
};

// Connections that say nothing, or a byte now and then, are closed, and those who wait for their places are answered.
TEST_F(ImpatientHttp, SlowClientsLoseTheirPlaces) {
  std::vector<std::unique_ptr<HttpConnection>> slow;
  for (int i = 0; i < 12; ++i) slow.push_back(std::make_unique<HttpConnection>(port_));
  for (std::size_t i = 0; i < slow.size(); i += 2) slow[i]->write("GET / HT");
  EXPECT_THAT(test::get(port_, "/"), StartsWith("HTTP/1.1 200 "));
  for (const auto& connection : slow) EXPECT_EQ(connection->read_all(), "");
}

TEST_F(ImpatientHttp, AnIdleConnectionIsClosed) {
  HttpConnection connection(port_);
  connection.write("GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(connection.read_until("}"), HasSubstr("200 OK"));
  EXPECT_EQ(connection.read_all(), "");
}

// A client that asks and does not read holds its connection for a bounded time, and nobody else up.
TEST(StatusServer, AClientThatDoesNotReadIsLeft) {
  net::StatusRoutes routes;
  routes["/large"] = {"text/plain", [] { return std::string(64 << 20, 'x'); }};
  routes["/small"] = {"text/plain", [] { return std::string("small"); }};
  StatusServer server({.most_connections = 2, .answer_limit = std::chrono::milliseconds(300)}, std::move(routes));
  server.start();
  HttpConnection deaf(server.port()), deaf_too(server.port());
  deaf.write(test::request_of("GET", "/large"));
  deaf_too.write(test::request_of("GET", "/large"));
  EXPECT_EQ(test::body_of(test::get(server.port(), "/small")), "small");
}

TEST(StatusServer, ARouteThatFailsEndsOnlyItsConnection) {
  net::StatusRoutes routes;
  routes["/bad"] = {"text/plain", []() -> std::string { throw Error("no"); }};
  routes["/good"] = {"text/plain", [] { return std::string("good"); }};
  StatusServer server({}, std::move(routes));
  server.start();
  EXPECT_EQ(test::get(server.port(), "/bad"), "");
  EXPECT_EQ(test::body_of(test::get(server.port(), "/good")), "good");
}

TEST(StatusServer, AddressesThatCannotBeUsedAreErrors) {
  StatusServer first({}, {});
  const auto message_of = [](const StatusOptions& options) -> std::string {
    try {
      StatusServer server(options, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message_of({.port = first.port()}), HasSubstr("cannot show the status at 127.0.0.1:" + std::to_string(first.port())));
  EXPECT_THAT(message_of({.host = "nowhere"}), HasSubstr("the address has to be numbers"));
}

}  // namespace
}  // namespace fl
