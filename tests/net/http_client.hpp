// Requests of HTTP as bytes, right or wrong, to a server on this machine.
#pragma once

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <string>

namespace fl::test {

// A connection to 127.0.0.1. A read ends after `patience_s` without a byte.
class HttpConnection {
 public:
  explicit HttpConnection(std::uint16_t port, int patience_s = 10) : socket_(io_) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    const timeval patience{.tv_sec = patience_s, .tv_usec = 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  void write(const std::string& text) {
    boost::system::error_code error;
    boost::asio::write(socket_, boost::asio::buffer(text), error);
  }
  // Returns all bytes until the server closes the connection, or nothing comes any more.
  std::string read_all() {
    std::string text;
    char bytes[65536];
    for (ssize_t more = 0; (more = ::recv(socket_.native_handle(), bytes, sizeof bytes, 0)) > 0;)
      text.append(bytes, static_cast<std::size_t>(more));
    return text;
  }
  // Returns the bytes until this text has come.
  std::string read_until(const std::string& end) {
    std::string text;
    char c = 0;
    while (!text.ends_with(end) && ::recv(socket_.native_handle(), &c, 1, 0) == 1) text += c;
    return text;
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
};

// Returns the whole answer to a request, headers included.
inline std::string answer_to(std::uint16_t port, const std::string& request) {
  HttpConnection connection(port);
  connection.write(request);
  return connection.read_all();
}
inline std::string request_of(const std::string& method, const std::string& target, const std::string& more = "") {
  return method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + more + "\r\n";
}
inline std::string get(std::uint16_t port, const std::string& target) { return answer_to(port, request_of("GET", target)); }
inline std::string body_of(const std::string& answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace fl::test
