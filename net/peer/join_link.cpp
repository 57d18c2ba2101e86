#include "net/peer/join_link.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace fl::net {

namespace {

// Notes when bytes arrive, so that a long frame is no silence.
class HeardConnection final : public Connection {
 public:
  using Clock = std::chrono::steady_clock;
  HeardConnection(std::unique_ptr<Connection> inner, Clock::time_point& heard) : inner_(std::move(inner)), heard_(heard) {}

  asio::awaitable<void> handshake() override { return inner_->handshake(); }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    const std::size_t size = co_await inner_->read_some(buffer);
    heard_ = Clock::now();
    co_return size;
  }
  asio::awaitable<void> write(std::vector<asio::const_buffer> pieces) override { return inner_->write(std::move(pieces)); }
  asio::awaitable<void> finish() override { return inner_->finish(); }
  void close() noexcept override { inner_->close(); }
  [[nodiscard]] asio::any_io_executor executor() override { return inner_->executor(); }
  [[nodiscard]] std::string remote() const override { return inner_->remote(); }
  [[nodiscard]] const Identity& identity() const override { return inner_->identity(); }
  [[nodiscard]] std::string why_invalid() override { return inner_->why_invalid(); }

 private:
  std::unique_ptr<Connection> inner_;
  Clock::time_point& heard_;
};

OutgoingFrame heartbeat() {
  wire::Header header;
  header.mutable_heartbeat();
  return make_frame(header);
}

}  // namespace

JoinLink::JoinLink(std::unique_ptr<Connection> connection, const LinkTimes& times)
    : connection_(std::make_unique<HeardConnection>(std::move(connection), heard_)),
      times_(times),
      wake_(connection_->executor()),
      silence_(connection_->executor()) {}

void JoinLink::start() {
  asio::co_spawn(
      connection_->executor(), [self = shared_from_this()] { return self->write_all(); }, asio::detached);
  asio::co_spawn(
      connection_->executor(), [self = shared_from_this()] { return self->watch_silence(); }, asio::detached);
}

void JoinLink::put(OutgoingFrame frame) {
  if (is_closed_) return;
  outbox_.push_back(std::move(frame));
  wake_.cancel();
}

asio::awaitable<Frame> JoinLink::read() {
  // The longest payload of a server: a model, shared slots and a memory, all dense.
  constexpr std::uint64_t kMostPayload = std::uint64_t{1} << 36;
  heard_ = Clock::now();  // what came while nobody read waits in the socket
  is_reading_ = true;
  Frame frame = co_await frames_.read(kMostPayload);
  is_reading_ = false;
  co_return frame;
}

asio::awaitable<void> JoinLink::pause(std::chrono::milliseconds time) {
  asio::steady_timer timer(connection_->executor(), time);
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> JoinLink::finish() {
  const auto until = Clock::now() + times_.farewell;
  while (!is_closed_ && (is_writing_ || !outbox_.empty()) && Clock::now() < until) co_await pause(std::chrono::milliseconds(5));
  if (!is_closed_ && !is_reading_) co_await connection_->finish();
  close();
}

void JoinLink::close() {
  is_closed_ = true;
  connection_->close();
  wake_.cancel();
  silence_.cancel();
}

asio::awaitable<void> JoinLink::write_all() {
  try {
    while (!is_closed_) {
      if (outbox_.empty()) {
        boost::system::error_code cancelled;
        wake_.expires_after(times_.heartbeat);
        co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        if (is_closed_) break;
        if (!cancelled) outbox_.push_back(heartbeat());
        continue;
      }
      FrameBatch batch;
      for (; !outbox_.empty() && !batch.is_full(); outbox_.pop_front()) batch.add(std::move(outbox_.front()));
      is_writing_ = true;
      co_await batch.write(*connection_);
      is_writing_ = false;
      bytes_out_ += batch.bytes();
    }
  } catch (const boost::system::system_error&) {  // the reader hears of it too
    is_writing_ = false;
    close();
  }
}

asio::awaitable<void> JoinLink::watch_silence() {
  while (!is_closed_) {
    boost::system::error_code cancelled;
    silence_.expires_after(times_.silence / 4);
    co_await silence_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (is_closed_ || !is_reading_ || Clock::now() - heard_ < times_.silence) continue;
    why_closed_ = "the server says nothing for " + std::to_string(times_.silence.count() / 1000) + " seconds";
    close();
  }
}

}  // namespace fl::net
