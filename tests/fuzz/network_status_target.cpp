// Any bytes are sent to the status page as a request. It answers with HTTP or closes the connection, and then answers the next one.
//
// net_status   The bytes of a connection, which the client then closes for writing.
#include <signal.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <string>

#include "status/status_page.hpp"
#include "tests/fuzz/target.hpp"

namespace {

namespace net = fl::net;
namespace asio = boost::asio;
using asio::ip::tcp;
using fl::fuzz::require;

constexpr const char* kSecret = "only for those who ask for it at an address of this machine";

// Keeps the alarms of libFuzzer, which looks at its clock with them, from this thread: they interrupt calls that wait for the network. The
// page bounds its own time.
class WithoutAlarms {
 public:
  WithoutAlarms() {
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_BLOCK, &alarm, &before_);
  }
  ~WithoutAlarms() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutAlarms(const WithoutAlarms&) = delete;
  WithoutAlarms& operator=(const WithoutAlarms&) = delete;

 private:
  sigset_t before_{};
};

class Page {
 public:
  Page() : server_({}, routes()) { server_.start(); }

  // Returns everything that the server sends for these bytes.
  [[nodiscard]] std::string answer_to(std::string_view bytes) const {
    const WithoutAlarms quiet;
    asio::io_context io;
    tcp::socket socket(io);
    boost::system::error_code error;
    socket.connect({asio::ip::address_v4::loopback(), server_.port()}, error);
    require(!error, "the page accepts no connection: " + error.message());
    asio::write(socket, asio::buffer(bytes), error);  // fails where the server has closed the connection before the end
    socket.shutdown(tcp::socket::shutdown_send, error);
    std::string answer;
    asio::read(socket, asio::dynamic_buffer(answer, 1 << 20), error);
    return answer;
  }

 private:
  static net::StatusRoutes routes() {
    net::StatusRoutes routes = net::page_routes();
    routes["/secret"] = {.content_type = "text/plain", .body = [] { return std::string(kSecret); }};
    return routes;
  }
  net::StatusServer server_;
};

void net_status(std::span<const std::byte> bytes) {
  static const Page page;
  const std::string_view request = fl::fuzz::as_text(bytes);
  const std::string answer = page.answer_to(request);
  require(answer.empty() || answer.starts_with("HTTP/1."), "an answer that is not HTTP");
  const bool tells = answer.find(kSecret) != std::string::npos;
  require(!tells || request.find("/secret") != std::string_view::npos, "a route was told that was not asked for");
  static unsigned count = 0;
  if (++count % 64 == 0)
    require(page.answer_to("GET /secret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").find(kSecret) != std::string::npos,
            "a right request is not answered any more");
}

const fl::fuzz::Register kNetStatus("net_status", net_status);

}  // namespace
