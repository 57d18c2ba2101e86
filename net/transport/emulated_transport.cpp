#include "net/transport/emulated_transport.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <deque>
#include <utility>

#include "net/transport/link_schedule.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

namespace {

using Clock = std::chrono::steady_clock;
using Fault = LinkSchedule::Fault;

constexpr std::size_t kMostOnTheWay = std::size_t{1} << 26;  // bytes of one direction
constexpr std::size_t kPiece = 16384;                        // bytes read at once
constexpr std::chrono::seconds kLongestFlush{60};            // for what was written before the end

// Lets coroutines of one thread wait for a time or a change.
class Waiting {
 public:
  explicit Waiting(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  asio::awaitable<void> wait_until(Clock::time_point until) {
    asio::steady_timer timer(executor_, until);
    const Entry entry(timers_, timer);
    boost::system::error_code cancelled;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  asio::awaitable<void> wait() { return wait_until(Clock::time_point::max()); }
  void wake_all() {
    for (asio::steady_timer* timer : timers_) timer->cancel();
  }

 private:
  using Timers = std::vector<asio::steady_timer*>;
  struct Entry {
    Entry(Timers& timers_, asio::steady_timer& timer_) : timers(timers_), timer(&timer_) { timers.push_back(timer); }
    ~Entry() { std::erase(timers, timer); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    Timers& timers;
    asio::steady_timer* timer;
  };
  asio::any_io_executor executor_;
  Timers timers_;
};

// One direction: the bytes that are on their way.
struct Direction {
  Direction(const NetworkConditions& conditions, const LinkName& name) : schedule(conditions, name) {}

  struct Piece {
    Clock::time_point due;
    Bytes bytes;
    std::size_t used = 0;
  };
  [[nodiscard]] Clock::time_point next_due() const { return pieces.empty() ? Clock::time_point::max() : pieces.front().due; }
  [[nodiscard]] bool has_due_piece() const { return !pieces.empty() && pieces.front().due <= Clock::now(); }
  void lose_pieces() {
    pieces.clear();
    on_the_way = 0;
  }

  LinkSchedule schedule;
  std::deque<Piece> pieces;
  std::size_t on_the_way = 0;
  bool has_ended = false;           // no piece follows
  boost::system::error_code error;  // with which it has ended
};

// The state that a connection shares with the coroutines that move its bytes. They outlive the connection until its socket is closed.
class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(std::unique_ptr<Connection> inner, const NetworkConditions& conditions, const LinkName& name)
      : inner_(std::move(inner)),
        out_(conditions, {name.place, name.connection, 0}),
        in_(conditions, {name.place, name.connection, 1}),
        waiting_(inner_->executor()) {}

  [[nodiscard]] Connection& inner() { return *inner_; }

  // Begins to receive.
  void start() {
    is_receiving_ = true;
    asio::co_spawn(inner_->executor(), receive(),
                   asio::bind_cancellation_slot(stop_receiving_.slot(), [self = shared_from_this()](std::exception_ptr) {
                     self->is_receiving_ = false;
                     self->waiting_.wake_all();
                   }));
  }

  asio::awaitable<void> write(std::vector<asio::const_buffer> pieces) {
    for (const asio::const_buffer& piece : pieces) {
      const std::span bytes(static_cast<const std::byte*>(piece.data()), piece.size());
      for (std::size_t at = 0; at < bytes.size();) {
        at += co_await admit(out_, bytes.subspan(at));
        if (!is_delivering_ && !out_.pieces.empty()) start_delivering();
      }
    }
    if (out_.error) throw boost::system::system_error(out_.error);
  }

  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) {
    while (!in_.has_due_piece()) {
      if (in_.pieces.empty() && in_.has_ended && !is_silent_) throw boost::system::system_error(in_.error);
      co_await waiting_.wait_until(in_.next_due());
    }
    Direction::Piece& front = in_.pieces.front();
    const std::size_t size = std::min(buffer.size(), front.bytes.size() - front.used);
    std::memcpy(buffer.data(), front.bytes.data() + front.used, size);
    front.used += size;
    if (front.used == front.bytes.size()) remove_front(in_, front.bytes.size());
    co_return size;
  }

  // Waits until everything that was written has left and the other side has closed the connection.
  asio::awaitable<void> finish() {
    while (!out_.pieces.empty()) co_await waiting_.wait();
    out_.has_ended = true;
    waiting_.wake_all();
    stop_receiving_.emit(asio::cancellation_type::terminal);
    while (is_receiving_) co_await waiting_.wait();
    if (!is_silent_ && !out_.error) co_await inner_->finish();
    close();
  }

  void close() noexcept {
    is_silent_ = false;
    end(asio::error::operation_aborted);
  }

 private:
  // Lets the next bytes enter a direction when the bandwidth allows it, and returns their number. Bytes for a broken direction are lost.
  asio::awaitable<std::size_t> admit(Direction& direction, std::span<const std::byte> bytes) {
    const auto is_broken = [&] { return is_silent_ || direction.has_ended; };
    if (is_broken()) co_return bytes.size();
    const LinkSchedule::Passage passage = direction.schedule.pass(bytes.size(), Clock::now().time_since_epoch());
    if (passage.fault != Fault::none) {
      passage.fault == Fault::reset ? end(asio::error::connection_reset) : fall_silent();
      co_return bytes.size();
    }
    const Clock::time_point departs{passage.departs};
    while (!is_broken() && Clock::now() < departs) co_await waiting_.wait_until(departs);
    while (!is_broken() && direction.on_the_way > kMostOnTheWay) co_await waiting_.wait();
    if (is_broken()) co_return bytes.size();
    const auto piece = bytes.first(passage.bytes);
    direction.pieces.push_back({.due = Clock::time_point(passage.arrives), .bytes = Bytes(piece.begin(), piece.end())});
    if (passage.flipped_bit >= 0) direction.pieces.back().bytes.front() ^= std::byte{1} << passage.flipped_bit;
    direction.on_the_way += piece.size();
    waiting_.wake_all();
    co_return piece.size();
  }

  // There is no coroutine that delivers while nothing is on its way, so that it does not keep the io_context of a session from ending.
  void start_delivering() {
    is_delivering_ = true;
    asio::co_spawn(inner_->executor(), deliver(), [self = shared_from_this()](std::exception_ptr) {});
  }

  // Writes bytes to the socket when they are due.
  asio::awaitable<void> deliver() {
    try {
      while (!out_.pieces.empty()) {
        if (!out_.has_due_piece()) {
          co_await waiting_.wait_until(out_.next_due());
          continue;
        }
        const Bytes bytes = std::move(out_.pieces.front().bytes);
        const std::vector<asio::const_buffer> whole(1, asio::buffer(bytes));
        co_await inner_->write(whole);
        if (!out_.pieces.empty()) remove_front(out_, bytes.size());  // otherwise all were lost meanwhile
      }
    } catch (const boost::system::system_error& error) {
      end(error.code());
    }
    is_delivering_ = false;
  }

  // Reads bytes from the socket, which are due later.
  asio::awaitable<void> receive() {
    std::vector<std::byte> bytes(kPiece);
    try {
      while (!in_.has_ended && !is_silent_) {
        const std::size_t size = co_await inner_->read_some(asio::buffer(bytes));
        const auto read = std::span<const std::byte>(bytes).first(size);
        for (std::size_t at = 0; at < size;) at += co_await admit(in_, read.subspan(at));
      }
    } catch (const boost::system::system_error& error) {
      if (in_.has_ended) co_return;
      in_.has_ended = true;  // after the bytes that are on their way
      in_.error = error.code();
      waiting_.wake_all();
    }
  }

  void remove_front(Direction& direction, std::size_t size) {
    direction.on_the_way -= size;
    direction.pieces.pop_front();
    waiting_.wake_all();
  }

  void end(boost::system::error_code error) noexcept {
    for (Direction* direction : {&out_, &in_}) {
      if (!direction->error) direction->error = error;
      direction->has_ended = true;
      direction->lose_pieces();
    }
    waiting_.wake_all();
    inner_->close();
  }

  void fall_silent() {
    is_silent_ = true;
    for (Direction* direction : {&out_, &in_}) direction->lose_pieces();
    waiting_.wake_all();
  }

  std::unique_ptr<Connection> inner_;
  Direction out_, in_;
  Waiting waiting_;
  asio::cancellation_signal stop_receiving_;
  bool is_receiving_ = false, is_delivering_ = false, is_silent_ = false;  // silent = half open
};

class EmulatedConnection final : public Connection {
 public:
  explicit EmulatedConnection(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~EmulatedConnection() override { link_->close(); }
  EmulatedConnection(const EmulatedConnection&) = delete;
  EmulatedConnection& operator=(const EmulatedConnection&) = delete;

  asio::awaitable<void> handshake() override {
    co_await link_->inner().handshake();
    link_->start();
  }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override { return link_->read_some(buffer); }
  asio::awaitable<void> write(std::vector<asio::const_buffer> pieces) override { return link_->write(std::move(pieces)); }
  asio::awaitable<void> finish() override {
    const CloseTimer timer(*this, kLongestFlush);
    co_await link_->finish();
  }
  void close() noexcept override { link_->close(); }
  [[nodiscard]] asio::any_io_executor executor() override { return link_->inner().executor(); }
  [[nodiscard]] std::string remote() const override { return link_->inner().remote(); }
  [[nodiscard]] const Identity& identity() const override { return link_->inner().identity(); }
  [[nodiscard]] std::string why_invalid() override { return link_->inner().why_invalid(); }

 private:
  std::shared_ptr<Link> link_;
};

class EmulatedTransport final : public Transport {
 public:
  EmulatedTransport(std::shared_ptr<Transport> inner, const NetworkConditions& conditions, std::uint32_t place)
      : inner_(std::move(inner)), conditions_(conditions), place_(place) {}

  [[nodiscard]] std::unique_ptr<Connection> accepted(asio::ip::tcp::socket socket) override {
    return emulated(inner_->accepted(std::move(socket)));
  }
  [[nodiscard]] std::unique_ptr<Connection> connected(asio::ip::tcp::socket socket, const std::string& host) override {
    return emulated(inner_->connected(std::move(socket), host));
  }

 private:
  std::unique_ptr<Connection> emulated(std::unique_ptr<Connection> connection) {
    const LinkName name{.place = place_, .connection = num_connections_++};
    return std::make_unique<EmulatedConnection>(std::make_shared<Link>(std::move(connection), conditions_, name));
  }

  std::shared_ptr<Transport> inner_;
  NetworkConditions conditions_;
  std::uint32_t place_, num_connections_ = 0;
};

}  // namespace

std::shared_ptr<Transport> emulated_transport(std::shared_ptr<Transport> inner, const NetworkConditions& conditions, std::uint32_t place) {
  return std::make_shared<EmulatedTransport>(std::move(inner), conditions, place);
}

}  // namespace fl::net
