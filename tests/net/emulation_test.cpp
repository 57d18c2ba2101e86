// Tests the emulated network: the arithmetic of its times, where its faults occur, and runs under it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cmath>
#include <optional>
#include <set>

#include "fl_core/config/error.hpp"
#include "net/transport/emulated_transport.hpp"
#include "net/transport/link_schedule.hpp"
#include "net/transport/stream.hpp"
#include "tests/net/network_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using net::LinkSchedule;
using net::NetworkConditions;
using net::TokenBucket;
using testing::HasSubstr;

// ---- the token bucket, with a clock that the test moves

TEST(TokenBucketTest, BytesWaitForTheirTokens) {
  TokenBucket bucket(1000, 100);  // 1 ms for a byte
  EXPECT_EQ(bucket.take(100, 0s), 0s) << "the bucket is full at first";
  EXPECT_EQ(bucket.take(50, 0s), 50ms);
  EXPECT_EQ(bucket.take(50, 0s), 100ms) << "behind those that wait already";
  EXPECT_EQ(bucket.take(10, 100ms), 110ms);
  EXPECT_EQ(bucket.take(60, 1s), 1s) << "it is full again";
  EXPECT_EQ(bucket.take(60, 1s), 1020ms) << "and never more than full";
  EXPECT_EQ(bucket.take(5, 1070ms), 1070ms);
}

TEST(TokenBucketTest, TheRateHoldsOverAnyTime) {
  for (const double rate : {1250.0, 1.25e6, 1.25e9}) {
    TokenBucket bucket(rate, 16384);
    TokenBucket::Time now{0};
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < 3000; ++i) {
      const std::size_t size = 1 + i * 7919 % 20000;
      bytes += size;
      now = bucket.take(size, now);
    }
    const double expected = (static_cast<double>(bytes) - 16384) / rate;
    EXPECT_NEAR(std::chrono::duration<double>(now).count(), expected, 1e-5 * expected + 4e-6) << rate;
  }
}

TEST(TokenBucketTest, ARateOfZeroLimitsNothing) {
  TokenBucket bucket(0, 1);
  EXPECT_EQ(bucket.take(std::size_t{1} << 40, 5s), 5s);
}

// ---- times and faults of a direction

TEST(LinkScheduleTest, LatencyDelaysAndDoesNotLimit) {
  LinkSchedule link({.latency_s = 0.05}, {});
  for (int i = 0; i < 100; ++i) {
    const LinkSchedule::Passage passage = link.pass(1000, std::chrono::milliseconds(i));
    EXPECT_EQ(passage.bytes, 1000U);
    EXPECT_EQ(passage.departs, std::chrono::milliseconds(i));
    EXPECT_EQ(passage.arrives, std::chrono::milliseconds(i + 50));
  }
}

// A peer sends up, and a server sends down. A direction without a rate of its own has the bandwidth.
TEST(LinkScheduleTest, RatesUpAndDownDiffer) {
  const NetworkConditions conditions{.bandwidth = 8e3, .down = 80e3, .burst_bytes = 1};
  const auto departure = [&](std::uint32_t place, std::uint32_t direction) {
    LinkSchedule link(conditions, {.place = place, .direction = direction});
    static_cast<void>(link.pass(1, 0s));  // the burst
    return std::chrono::duration<double>(link.pass(1000, 0s).departs).count();
  };
  EXPECT_NEAR(departure(3, 0), 1.0, 1e-6) << "up at the bandwidth";
  EXPECT_NEAR(departure(3, 1), 0.1, 1e-6) << "down at its own rate";
  EXPECT_NEAR(departure(net::kServerPlace, 0), 0.1, 1e-6);
  EXPECT_NEAR(departure(net::kServerPlace, 1), 1.0, 1e-6);
}

TEST(LinkScheduleTest, JitterNeverChangesTheOrder) {
  LinkSchedule link({.latency_s = 0.01, .jitter_s = 0.02}, {});
  LinkSchedule::Time last{0};
  std::set<std::int64_t> ways;
  for (int i = 0; i < 1000; ++i) {
    const LinkSchedule::Time now = std::chrono::milliseconds(i);
    const LinkSchedule::Passage passage = link.pass(net::kPacketBytes, now);
    EXPECT_GE(passage.arrives, last);
    EXPECT_GE(passage.arrives, now + 10ms);
    EXPECT_LE(passage.arrives, now + 30ms);
    last = passage.arrives;
    ways.insert((passage.arrives - now).count());
  }
  EXPECT_GT(ways.size(), 100U);
}

// Returns the bytes of the stream at which faults and stalls occur, if it is written in pieces of this size.
std::vector<std::uint64_t> events_of(const NetworkConditions& conditions, const net::LinkName& name, std::size_t piece) {
  LinkSchedule link(conditions, name);
  std::vector<std::uint64_t> places;
  LinkSchedule::Time now{0};
  for (std::uint64_t at = 0; at < 10'000'000;) {
    const LinkSchedule::Passage passage = link.pass(piece, now);
    if (passage.fault != LinkSchedule::Fault::none) {
      places.push_back(at);
      break;
    }
    if (passage.departs > now + 1s) places.push_back(at);
    now = passage.departs;
    at += passage.bytes;
  }
  return places;
}

TEST(LinkScheduleTest, FaultsAreAtTheSameBytesHoweverTheStreamIsWritten) {
  const NetworkConditions conditions{.stall = 0.01, .stall_s = 2, .reset = 0.0002, .seed = 5};
  const auto once = events_of(conditions, {.place = 3}, 1 << 20);
  EXPECT_GT(once.size(), 3U);
  for (const std::size_t piece : {std::size_t{100}, std::size_t{1460}, std::size_t{5000}})
    EXPECT_EQ(events_of(conditions, {.place = 3}, piece), once);
  EXPECT_NE(events_of(conditions, {.place = 4}, 1460), once);
  EXPECT_NE(events_of(conditions, {.place = 3, .connection = 1}, 1460), once);
  EXPECT_NE(events_of(conditions, {.place = 3, .direction = 1}, 1460), once);
}

TEST(LinkScheduleTest, FaultsHaveTheirProbability) {
  const NetworkConditions conditions{.stall = 0.02, .stall_s = 2};
  const double expected = 0.02 * 10'000'000 / net::kPacketBytes;  // 137
  EXPECT_NEAR(static_cast<double>(events_of(conditions, {}, 1 << 20).size()), expected, 5 * std::sqrt(expected));
}

// ---- the option

TEST(NetworkConditionsTest, AllKeysAreRead) {
  const NetworkConditions read =
      net::parse_network_conditions("bandwidth=10M burst=2K latency=50ms jitter=10us stall=0.01:2s reset=0.001 half_open=1e-4 seed=9");
  EXPECT_EQ(read.bandwidth, 1e7);
  EXPECT_EQ(read.burst_bytes, 2048);
  EXPECT_DOUBLE_EQ(read.latency_s, 0.05);
  EXPECT_DOUBLE_EQ(read.jitter_s, 1e-5);
  EXPECT_EQ(read.stall, 0.01);
  EXPECT_EQ(read.stall_s, 2);
  EXPECT_EQ(read.reset, 0.001);
  EXPECT_EQ(read.half_open, 1e-4);
  EXPECT_EQ(read.seed, 9U);
  const NetworkConditions both = net::parse_network_conditions("down=100M up=0.02G");
  EXPECT_EQ(both.down, 1e8);
  EXPECT_EQ(both.up, 2e7);
}

std::string refusal_of_conditions(const std::string& text) {
  try {
    static_cast<void>(net::parse_network_conditions(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(NetworkConditionsTest, ErrorsNameKeyValueAndBounds) {
  EXPECT_THAT(refusal_of_conditions("latency=50"), HasSubstr("latency must be a number with a unit (s, ms, us), is '50'"));
  EXPECT_THAT(refusal_of_conditions("latency=61s"), HasSubstr("latency must be in [0, 60], is '61s'"));
  EXPECT_THAT(refusal_of_conditions("latency=nans"), HasSubstr("latency must be in [0, 60]"));
  EXPECT_THAT(refusal_of_conditions("bandwidth=1"), HasSubstr("bandwidth must be in [1000, 1e+12], is '1'"));
  EXPECT_THAT(refusal_of_conditions("reset=1.5"), HasSubstr("reset must be in [0, 1]"));
  EXPECT_THAT(refusal_of_conditions("stall=0.1"), HasSubstr("stall must be PROBABILITY:TIME"));
  EXPECT_THAT(refusal_of_conditions("latncy=5ms"), HasSubstr("did you mean 'latency'?"));
  EXPECT_THAT(refusal_of_conditions("reset=0.1 reset=0.2"), HasSubstr("states reset twice"));
  EXPECT_THAT(refusal_of_conditions("reset=0.6 half_open=0.6"), HasSubstr("exceeds 1"));
  EXPECT_THAT(refusal_of_conditions("seed=-1"), HasSubstr("seed must be a whole number"));
  EXPECT_THAT(refusal_of_conditions("reset"), HasSubstr("must consist of KEY=VALUE"));
  EXPECT_THAT(refusal_of_conditions(" "), HasSubstr("is empty"));
}

// ---- connections

// Two sides of a connection over the loopback interface, the first of them with these conditions.
class EmulatedPair {
 public:
  explicit EmulatedPair(const NetworkConditions& conditions) {
    asio::ip::tcp::acceptor acceptor = net::listen_at(io, "127.0.0.1", 0);
    asio::ip::tcp::socket first(io), second(io);
    first.connect(acceptor.local_endpoint());
    acceptor.accept(second);
    emulated = net::emulated_transport(net::plain_transport(), conditions, 0)->connected(std::move(first), "");
    plain = net::plain_transport()->accepted(std::move(second));
  }
  // Runs a coroutine until it ends and returns its error. Coroutines of the other side go on meanwhile.
  std::string error_of(asio::awaitable<void> work) {
    std::optional<std::exception_ptr> over;
    asio::co_spawn(io, std::move(work), [&over](std::exception_ptr thrown) { over = thrown; });
    for (io.restart(); !over;) io.run_one();  // it has stopped if nothing was left to do
    try {
      if (*over) std::rethrow_exception(*over);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  asio::io_context io{1};
  std::unique_ptr<net::Connection> emulated, plain;
};

TEST(EmulatedConnectionTest, BytesArriveAsTheyWereSent) {
  EmulatedPair pair({.bandwidth = 200e6, .latency_s = 0.005, .jitter_s = 0.005, .stall = 0.01, .stall_s = 0.002});
  net::Bytes sent(1'000'000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * i >> 7);
  const auto echo = [&]() -> asio::awaitable<void> {
    net::Bytes received(sent.size());
    co_await pair.plain->read(asio::buffer(received));
    const std::vector<asio::const_buffer> back(1, asio::buffer(received));
    co_await pair.plain->write(back);
  };
  net::Bytes received(sent.size());
  const auto work = [&]() -> asio::awaitable<void> {
    co_await pair.emulated->handshake();
    const std::vector<asio::const_buffer> pieces{asio::buffer(sent.data(), 10), asio::buffer(sent.data() + 10, sent.size() - 10)};
    co_await pair.emulated->write(pieces);
    co_await pair.emulated->read(asio::buffer(received));
  };
  asio::co_spawn(pair.io, echo(), [](std::exception_ptr) {});
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(pair.error_of(work()), "");
  EXPECT_TRUE(received == sent);
  // 2 MB at 25 MB/s take 80 ms less the bursts, and 10 ms are for the way there and back.
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 70ms);
}

TEST(EmulatedConnectionTest, FinishDeliversWhatWasWritten) {
  EmulatedPair pair({.bandwidth = 80e6, .latency_s = 0.02});
  net::Bytes received(300'000);
  std::string end;
  const auto read_all = [&]() -> asio::awaitable<void> {
    co_await pair.plain->read(asio::buffer(received));
    try {
      std::byte more{};
      co_await pair.plain->read_some(asio::buffer(&more, 1));
    } catch (const boost::system::system_error& error) {
      end = error.code().message();
    }
    pair.plain->close();
  };
  const auto work = [&]() -> asio::awaitable<void> {
    co_await pair.emulated->handshake();
    const net::Bytes sent(received.size(), std::byte{7});
    const std::vector<asio::const_buffer> pieces(1, asio::buffer(sent));
    co_await pair.emulated->write(pieces);
    co_await pair.emulated->finish();
  };
  asio::co_spawn(pair.io, read_all(), [](std::exception_ptr) {});
  EXPECT_EQ(pair.error_of(work()), "");
  while (end.empty()) pair.io.run_one();
  EXPECT_EQ(end, "End of file");
  EXPECT_EQ(received.back(), std::byte{7});
}

TEST(EmulatedConnectionTest, AResetEndsBothSides) {
  EmulatedPair pair({.reset = 1});
  const auto work = [&]() -> asio::awaitable<void> {
    co_await pair.emulated->handshake();
    const net::Bytes sent(10);
    const std::vector<asio::const_buffer> pieces(1, asio::buffer(sent));
    co_await pair.emulated->write(pieces);
  };
  EXPECT_THAT(pair.error_of(work()), HasSubstr("reset by peer"));
  const auto other = [&]() -> asio::awaitable<void> {
    std::byte byte{};
    co_await pair.plain->read_some(asio::buffer(&byte, 1));
  };
  EXPECT_THAT(pair.error_of(other()), HasSubstr("End of file"));
}

TEST(EmulatedConnectionTest, AHalfOpenConnectionIsSilentUntilItIsClosed) {
  EmulatedPair pair({.half_open = 1});
  const auto write = [&]() -> asio::awaitable<void> {
    co_await pair.emulated->handshake();
    const net::Bytes sent(10);
    const std::vector<asio::const_buffer> pieces(1, asio::buffer(sent));
    co_await pair.emulated->write(pieces);
  };
  EXPECT_EQ(pair.error_of(write()), "") << "the sender does not notice";
  bool has_read = false;
  const auto read = [&]() -> asio::awaitable<void> {
    std::byte byte{};
    co_await pair.emulated->read_some(asio::buffer(&byte, 1));
  };
  asio::co_spawn(pair.io, read(), [&has_read](std::exception_ptr) { has_read = true; });
  const auto answer = [&]() -> asio::awaitable<void> {
    const net::Bytes sent(10);
    const std::vector<asio::const_buffer> pieces(1, asio::buffer(sent));
    co_await pair.plain->write(pieces);
    asio::steady_timer timer(pair.io, 50ms);
    co_await timer.async_wait(asio::use_awaitable);
  };
  EXPECT_EQ(pair.error_of(answer()), "");
  EXPECT_FALSE(has_read);
  pair.emulated->close();
  while (!has_read) pair.io.run_one();
}

// ---- runs

TEST(EmulatedRun, ARunUnderAnEmulatedNetworkIsTheSimulatedOne) {
  const std::string text = test::text_of(test::methods().at(1), "float32");
  const NetworkConditions conditions{.bandwidth = 20e6, .latency_s = 0.003, .jitter_s = 0.003, .stall = 0.02, .stall_s = 0.05, .seed = 4};
  const test::NetworkRun run = test::run_over_network(
      text, {"0-1", "2,5", "3-4,6"},
      {.server = net::emulated_transport(net::plain_transport(), conditions, net::kServerPlace),
       .peer = [&](std::uint32_t first) { return net::emulated_transport(net::plain_transport(), conditions, first); }});
  test::expect_same_run(text, test::run_simulated(text), run);
}

// Connections are closed at random packets, and peers connect again with the state that they have.
TEST(EmulatedRun, PeersRecoverFromResets) {
  const std::string text = test::text_of(test::methods().at(1), "float32");
  const NetworkConditions conditions{.latency_s = 0.001, .reset = 0.1, .seed = 1};
  const test::NetworkRun run = test::run_over_network(
      text, {"0-1", "2,5", "3-4,6"},
      {.server = {}, .peer = [&](std::uint32_t first) { return net::emulated_transport(net::plain_transport(), conditions, first); }});
  EXPECT_GT(run.num_connections, 3U) << "no connection was closed";
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.result.record.checksum, test::run_simulated(text).record.checksum);
}

}  // namespace
}  // namespace fl
