// Frames of the network beside the fastest that a socket does: one Update after another from a sending to a receiving thread over loopback,
// through plain TCP and through TLS.
//
//   network_bench [MIB_IN_ALL]     default: 2048 MiB for each row of 4 MiB payloads, and a 16th of it for smaller ones
//
// The pumps send the same bytes, a frame at a time, from one buffer to another with blocking calls (Asio for TCP, OpenSSL for TLS): no
// header is parsed and no memory is allocated. Rows are measured in turns, and the best of five turns counts.
// Columns: payload, GB/s of frames, GB/s of the pump, their ratio, bytes of framing per message, framing as a share of the payload.
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "bench/timing.hpp"
#include "net/transport/certificate_authority.hpp"
#include "net/transport/stream.hpp"
#include "net/transport/tls_transport.hpp"

namespace {

namespace net = fl::net;
namespace asio = boost::asio;
using asio::ip::tcp;

struct Work {
  std::size_t payload = 0, frames = 0;
};

// An Update as a client sends it.
net::OutgoingFrame update_of(std::size_t payload) {
  net::wire::Header header;
  header.mutable_update()->set_round(1000);
  header.mutable_update()->set_client(4999);
  header.mutable_update()->set_phase(1);
  return net::make_frame(header, {std::make_shared<const net::Bytes>(payload, std::byte{7})});
}

// Both ends of a connection over loopback, each with an io_context of its own.
struct Ends {
  asio::io_context sending{1}, receiving{1};
  tcp::socket sender{sending}, receiver{receiving};

  Ends() {
    tcp::acceptor acceptor(receiving, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    sender.connect(acceptor.local_endpoint());
    acceptor.accept(receiver);
    sender.set_option(tcp::no_delay(true));
    receiver.set_option(tcp::no_delay(true));
  }
};

// Runs both ends, each on a thread, and returns the seconds until both are done.
template <class Send, class Receive>
double seconds_of_both(const Send& send, const Receive& receive) {
  return fl::bench::seconds_of([&] {
           std::thread other(receive);
           send();
           other.join();
         })
      .wall;
}

void play(asio::io_context& io, asio::awaitable<void> what) {
  auto done = asio::co_spawn(io, std::move(what), asio::use_future);
  io.run();
  done.get();
}

asio::awaitable<void> send_frames(net::Connection& connection, const Work& work) {
  const net::OutgoingFrame frame = update_of(work.payload);
  for (std::size_t i = 0; i < work.frames; ++i) {
    net::FrameBatch one;
    one.add(frame);
    co_await one.write(connection);
  }
}

asio::awaitable<void> receive_frames(net::Connection& connection, const Work& work) {
  net::FrameReader frames(connection);
  for (std::size_t i = 0; i < work.frames; ++i) {
    const net::Frame frame = co_await frames.read(work.payload);
    if (frame.payload.size() != work.payload) std::abort();
  }
}

asio::awaitable<void> shake(net::Connection& connection) { co_await connection.handshake(); }

double seconds_of_frames(net::Transport& server, net::Transport& peer, const Work& work) {
  Ends ends;
  const auto sender = peer.connected(std::move(ends.sender), "127.0.0.1");
  const auto receiver = server.accepted(std::move(ends.receiver));
  seconds_of_both([&] { play(ends.sending, shake(*sender)); }, [&] { play(ends.receiving, shake(*receiver)); });
  ends.sending.restart();
  ends.receiving.restart();
  return seconds_of_both([&] { play(ends.sending, send_frames(*sender, work)); },
                         [&] { play(ends.receiving, receive_frames(*receiver, work)); });
}

std::size_t frame_bytes(const Work& work) { return update_of(work.payload).head.size() + work.payload; }

double seconds_of_tcp_pump(const Work& work) {
  Ends ends;
  std::vector<char> from(frame_bytes(work), 7), into(from.size());
  return seconds_of_both(
      [&] {
        for (std::size_t i = 0; i < work.frames; ++i) asio::write(ends.sender, asio::buffer(from));
      },
      [&] {
        for (std::size_t i = 0; i < work.frames; ++i) asio::read(ends.receiver, asio::buffer(into));
      });
}

struct Context {
  explicit Context(const std::filesystem::path& certificates, const std::string& name) {
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    const std::string certificate = certificates / (name + ".pem"), key = certificates / (name + ".key");
    if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
      std::abort();
  }
  ~Context() { SSL_CTX_free(context); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  SSL_CTX* context = SSL_CTX_new(TLS_method());
};

struct Session {
  Session(const Context& context, int socket) : ssl(SSL_new(context.context)) { SSL_set_fd(ssl, socket); }
  ~Session() { SSL_free(ssl); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  SSL* ssl;
};

double seconds_of_tls_pump(const Context& server, const Context& peer, const Work& work) {
  Ends ends;
  const Session sender(peer, ends.sender.native_handle()), receiver(server, ends.receiver.native_handle());
  seconds_of_both([&] { SSL_connect(sender.ssl); }, [&] { SSL_accept(receiver.ssl); });
  std::vector<char> from(frame_bytes(work), 7), into(from.size());
  return seconds_of_both(
      [&] {
        for (std::size_t i = 0; i < work.frames; ++i)
          if (SSL_write(sender.ssl, from.data(), static_cast<int>(from.size())) <= 0) std::abort();
      },
      [&] {
        for (std::size_t i = 0; i < work.frames; ++i)
          for (std::size_t have = 0; have < into.size();) {
            const int bytes = SSL_read(receiver.ssl, into.data() + have, static_cast<int>(into.size() - have));
            if (bytes <= 0) std::abort();
            have += static_cast<std::size_t>(bytes);
          }
      });
}

template <class Frames, class Pump>
void print_row(const char* name, const Work& work, const Frames& frames, const Pump& pump) {
  double ours = 1e300, limit = 1e300;
  for (int turn = 0; turn < 5; ++turn) {
    limit = std::min(limit, pump());
    ours = std::min(ours, frames());
  }
  const double gigabytes = 1e-9 * static_cast<double>(frame_bytes(work)) * static_cast<double>(work.frames);
  const auto framing = static_cast<double>(frame_bytes(work) - work.payload);
  std::printf("%-4s %9zu bytes   frames %6.2f GB/s   pump %6.2f GB/s   ratio %4.2f   framing %2.0f bytes, %.4f%%\n", name, work.payload,
              gigabytes / ours, gigabytes / limit, limit / ours, framing, 100 * framing / static_cast<double>(work.payload));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t total = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2048) << 20;
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("fedbits-network-bench-" + std::to_string(getpid()));
  net::create_authority({.folder = folder, .num_clients = 5000, .per_peer = 5000});
  const auto plain = net::plain_transport();
  const auto tls_server = net::tls_server_transport(folder);
  const auto tls_peer = net::tls_peer_transport(folder, "", {{4999, 4999}});
  {
    const Context server(folder, "server"), peer(folder, "clients-0-4999");
    for (const std::size_t payload : {std::size_t{4} << 20, std::size_t{64} << 10, std::size_t{1} << 10}) {
      const Work work{payload, total / (payload >= (std::size_t{1} << 20) ? 1 : 16) / std::max(payload, std::size_t{4096})};
      print_row(
          "TCP", work, [&] { return seconds_of_frames(*plain, *plain, work); }, [&] { return seconds_of_tcp_pump(work); });
      print_row(
          "TLS", work, [&] { return seconds_of_frames(*tls_server, *tls_peer, work); },
          [&] { return seconds_of_tls_pump(server, peer, work); });
    }
  }
  std::filesystem::remove_all(folder);
}
