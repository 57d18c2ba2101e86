// A web server for one test: serves texts from memory on its own port, and fails in the way that the test sets.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fl::test {

class HttpServer {
 public:
  HttpServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 8) != 0) std::abort();
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    is_over_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // The following functions set the next responses.
  void put(const std::string& path, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    files_[path] = bytes;
  }
  void hang_up_after(std::size_t bytes) {  // of the body of each response
    const std::lock_guard lock(mutex_);
    most_bytes_ = bytes;
  }
  void answer_properly() { hang_up_after(std::string::npos); }
  void ignore_ranges() {
    const std::lock_guard lock(mutex_);
    ignores_ranges_ = true;
  }
  void announce_nothing() {  // about the length of a response
    const std::lock_guard lock(mutex_);
    announces_ = false;
  }
  void redirect(const std::string& path, const std::string& to) {
    const std::lock_guard lock(mutex_);
    redirects_[path] = to;
  }
  // Returns "GET /path 0" for each request: its path and the first requested byte.
  [[nodiscard]] std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (!is_over_) {
      const int peer = ::accept(listener_, nullptr, nullptr);
      if (peer < 0) continue;
      answer(peer);
      ::close(peer);
    }
  }
  void answer(int peer) {
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::recv(peer, buffer, sizeof buffer, 0);
      if (count <= 0) return;
      request.append(buffer, static_cast<std::size_t>(count));
    }
    const std::string path = request.substr(4, request.find(' ', 4) - 4);
    const std::size_t range = request.find("Range: bytes=");
    const std::lock_guard lock(mutex_);
    std::size_t first = range == std::string::npos ? 0 : std::strtoull(request.c_str() + range + 13, nullptr, 10);
    requests_.push_back("GET " + path + " " + std::to_string(first));
    if (redirects_.contains(path)) return send(peer, "302 Found", "Location: " + redirects_[path] + "\r\n", "");
    if (!files_.contains(path)) return send(peer, "404 Not Found", "", "nothing here");
    const std::string& bytes = files_[path];
    if (ignores_ranges_ || range == std::string::npos) return send(peer, "200 OK", "", bytes);
    if (first >= bytes.size()) return send(peer, "416 Range Not Satisfiable", "", "no such range");
    const std::string total = std::to_string(bytes.size());
    send(peer, "206 Partial Content",
         "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(bytes.size() - 1) + "/" + total + "\r\n",
         bytes.substr(first));
  }
  void send(int peer, const std::string& status, const std::string& header, const std::string& body) const {
    const std::string length = announces_ ? "Content-Length: " + std::to_string(body.size()) + "\r\n" : "";
    const std::string text =
        "HTTP/1.1 " + status + "\r\n" + length + "Connection: close\r\n" + header + "\r\n" + body.substr(0, most_bytes_);
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t count = ::send(peer, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (count <= 0) return;
      done += static_cast<std::size_t>(count);
    }
  }

  int listener_;
  int port_ = 0;
  std::atomic<bool> is_over_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
  std::size_t most_bytes_ = std::string::npos;
  bool ignores_ranges_ = false, announces_ = true;
  std::map<std::string, std::string> redirects_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace fl::test
