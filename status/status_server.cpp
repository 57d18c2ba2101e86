#include "status/status_server.hpp"

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <thread>

#include "fl_core/config/error.hpp"

namespace fl::net {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Text = std::shared_ptr<const std::string>;

constexpr std::chrono::milliseconds kLinger{1200}, kOpenPage{3000};

// The answer to a request.
struct Answer {
  http::status status = http::status::ok;
  std::string content_type = "text/plain; charset=utf-8";
  Text body{};
  bool is_last = false;  // the connection is closed behind it
};

Answer refusal(http::status status, const std::string& why) {
  return {.status = status, .body = std::make_shared<const std::string>(why + "\n"), .is_last = true};
}

// Returns the host of a Host field, without its port.
std::string host_in(std::string_view field) {
  const std::size_t bracket = field.rfind(']'), colon = field.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) field = field.substr(0, colon);
  if (field.size() > 2 && field.front() == '[') field = field.substr(1, field.size() - 2);
  return std::string(field);
}

bool is_of_this_machine(const std::string& host) { return host == "127.0.0.1" || host == "::1" || host == "localhost"; }

}  // namespace

struct StatusServer::Impl {
  Impl(const StatusOptions& options_, StatusRoutes routes_) : options(options_), routes(std::move(routes_)), acceptor(io), room(io) {
    boost::system::error_code error;
    const auto check = [&](const char* step) {
      if (error)
        throw Error("cannot show the status at " + options.host + ":" + std::to_string(options.port) + ": " + step + ": " +
                    error.message());
    };
    const asio::ip::address address = asio::ip::make_address(options.host, error);
    check("the address has to be numbers, as 127.0.0.1");
    const tcp::endpoint endpoint(address, options.port);
    acceptor.open(endpoint.protocol(), error);
    check("open");
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    acceptor.bind(endpoint, error);
    check("bind");
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    check("listen");
    is_loopback = address.is_loopback();
  }

  asio::awaitable<void> accept() {
    for (;;) {
      while (connections >= options.most_connections) co_await wait_for_room();
      boost::system::error_code error;
      tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted) co_return;
      if (error) {  // no descriptor is free
        asio::steady_timer pause(io, 100ms);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      ++connections;
      asio::co_spawn(io, converse(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> wait_for_room() {
    room.expires_at(asio::steady_timer::time_point::max());
    boost::system::error_code cancelled;
    co_await room.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }

  asio::awaitable<void> converse(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer(kMostRequestBytes);
    try {
      for (std::chrono::milliseconds limit = options.request_limit; co_await exchange(stream, buffer, limit);) limit = options.idle_limit;
    } catch (const boost::system::system_error&) {  // the client is gone or too slow
    } catch (const std::exception&) {               // a route has failed; the run goes on
    }
    boost::system::error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream.close();
    --connections;
    room.cancel();
  }

  // Reads a request and answers it. Returns whether the connection stays open.
  asio::awaitable<bool> exchange(beast::tcp_stream& stream, beast::flat_buffer& buffer, std::chrono::milliseconds limit) {
    http::request_parser<http::empty_body> parser;
    parser.header_limit(kMostRequestBytes);
    boost::system::error_code error;
    stream.expires_after(limit);
    co_await http::async_read_header(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
    const bool is_wrong = error && error.category() == make_error_code(http::error::bad_method).category();
    if (error == http::error::end_of_stream || (error && !is_wrong)) co_return false;  // the client is gone or too slow
    Answer answer = error ? answer_to_bad(error) : answer_to(parser);
    const bool is_head = !error && parser.get().method() == http::verb::head;
    const bool is_busy = 2 * connections > options.most_connections;
    const bool stays = !error && !answer.is_last && !is_busy && parser.get().keep_alive();
    stream.expires_after(options.answer_limit);
    co_await send(stream, answer, error ? 11 : parser.get().version(), stays, is_head);
    co_return stays;
  }

  static Answer answer_to_bad(const boost::system::error_code& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refusal(http::status::request_header_fields_too_large,
                     "a request has at most " + std::to_string(kMostRequestBytes) + " bytes");
    return refusal(http::status::bad_request, "this is no request of HTTP");
  }

  Answer answer_to(const http::request_parser<http::empty_body>& parser) {
    const auto& request = parser.get();
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return refusal(http::status::method_not_allowed, "only GET and HEAD are answered here");
    if (parser.chunked() || parser.content_length().value_or(0) > 0)
      return refusal(http::status::payload_too_large, "a request has no content here");
    if (request.target().size() > kMostTargetBytes)
      return refusal(http::status::uri_too_long, "a path has at most " + std::to_string(kMostTargetBytes) + " bytes");
    // A name that leads to this machine and is not one of its own belongs to a page that wants to read what is shown here.
    const bool has_host = request.version() >= 11 || request.find(http::field::host) != request.end();
    if (is_loopback && has_host && !is_of_this_machine(host_in(request[http::field::host])))
      return refusal(http::status::misdirected_request, "this address answers to 127.0.0.1, [::1] and localhost");
    const std::string target(request.target());
    const auto found = routes.find(target.substr(0, target.find('?')));
    if (found == routes.end()) return refusal(http::status::not_found, "there is nothing at this path");
    if (found->second.tells_end) last_asked = Clock::now().time_since_epoch().count();
    return {.content_type = found->second.content_type, .body = text_of(found->first, found->second)};
  }

  // Returns the text of a route, which is made anew when it is older than kRefresh.
  Text text_of(const std::string& path, const StatusRoute& route) {
    auto& [made, text] = texts[path];
    if (text == nullptr || Clock::now() - made >= kRefresh || is_final) {
      text = std::make_shared<const std::string>(route.body());
      made = Clock::now();
    }
    return text;
  }

  static asio::awaitable<void> send(beast::tcp_stream& stream, const Answer& answer, unsigned version, bool stays, bool is_head) {
    http::response<http::span_body<const char>> response(answer.status, version);
    response.set(http::field::content_type, answer.content_type);
    response.set(http::field::cache_control, "no-store");
    response.set("Content-Security-Policy",
                 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
                 "form-action 'none'; frame-ancestors 'none'");
    response.set("X-Content-Type-Options", "nosniff");
    response.set("Referrer-Policy", "no-referrer");
    response.set("Cross-Origin-Resource-Policy", "same-origin");
    if (answer.status == http::status::method_not_allowed) response.set(http::field::allow, "GET, HEAD");
    response.keep_alive(stays);
    response.content_length(answer.body->size());
    if (!is_head) response.body() = beast::span<const char>(answer.body->data(), answer.body->size());
    http::response_serializer<http::span_body<const char>> serializer(response);
    if (is_head)
      co_await http::async_write_header(stream, serializer, asio::use_awaitable);
    else
      co_await http::async_write(stream, serializer, asio::use_awaitable);
  }

  asio::awaitable<void> read_lines(int descriptor, const std::function<void(const std::string&)>& tell) {
    asio::local::stream_protocol::socket lines(io, asio::local::stream_protocol(), descriptor);
    std::string text;
    for (;;) {
      boost::system::error_code error;
      const std::size_t length =
          co_await asio::async_read_until(lines, asio::dynamic_buffer(text), '\n', asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
      tell(text.substr(0, length - 1));
      text.erase(0, length);
    }
    io.stop();
  }

  [[nodiscard]] bool has_open_page() const { return Clock::now().time_since_epoch() - Clock::duration(last_asked.load()) < kOpenPage; }

  const StatusOptions options;
  const StatusRoutes routes;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer room;  // cancelled when a connection ends
  std::thread thread;
  std::map<std::string, std::pair<Clock::time_point, Text>> texts;  // by path
  std::size_t connections = 0;
  bool is_loopback = true;
  std::atomic<Clock::rep> last_asked{std::numeric_limits<Clock::rep>::min() / 2};  // when a page asked last
  std::atomic<bool> is_final = false;                                              // nothing changes any more
};

StatusServer::StatusServer(const StatusOptions& options, StatusRoutes routes) : impl_(std::make_unique<Impl>(options, std::move(routes))) {
  asio::co_spawn(impl_->io, impl_->accept(), asio::detached);
}

StatusServer::~StatusServer() {
  impl_->io.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

std::uint16_t StatusServer::port() const { return impl_->acceptor.local_endpoint().port(); }

void StatusServer::start() {
  impl_->thread = std::thread([impl = impl_.get()] { impl->io.run(); });
}

void StatusServer::serve_while_open(int lines, const std::function<void(const std::string&)>& tell) {
  asio::co_spawn(impl_->io, impl_->read_lines(lines, tell), asio::detached);
  impl_->io.run();
}

void StatusServer::linger() {
  impl_->is_final = true;
  if (!impl_->has_open_page()) return;
  if (impl_->thread.joinable()) return std::this_thread::sleep_for(kLinger);
  impl_->io.restart();
  impl_->io.run_for(kLinger);
}

}  // namespace fl::net
