// Tests that the size that a frame announces costs no memory, and that headers of peers are bounded in size, depth and content.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fl_core/state/checksum.hpp"
#include "net/transport/stream.hpp"
#include "net/wire/frame_rules.hpp"
#include "tests/support/memory_connection.hpp"
#include "tests/support/most_held.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

// Reads one frame from these bytes. Returns the error, or "" if the frame is complete.
std::string error_of_reading(const net::Bytes& bytes, const net::FrameLimits& limits) {
  boost::asio::io_context io;
  test::MemoryConnection connection(io, bytes, 1000);
  net::FrameReader frames(connection);
  const auto read = [&]() -> boost::asio::awaitable<void> { co_await frames.read(limits); };
  try {
    if (const std::exception_ptr thrown = test::run_to_end(io, read())) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// Returns the first bytes of a frame that announces these sizes, and then `more`.
net::Bytes announcement(std::uint64_t header, std::uint64_t payload, const net::Bytes& more = {}) {
  net::Bytes bytes(net::kPrefixBytes);
  const std::uint64_t word = header | payload << 24;
  std::memcpy(bytes.data(), &word, sizeof word);
  const auto check = static_cast<std::uint32_t>(hash64_of(std::span(bytes).first(16)));
  std::memcpy(bytes.data() + 16, &check, sizeof check);
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

net::Bytes header_bytes(const net::wire::Header& header) {
  const net::Bytes head = net::make_frame(header).head;
  return {head.begin() + net::kPrefixBytes, head.end()};
}

TEST(FrameLimits, AnAnnouncementOfFourGigabytesTakesNoMemory) {
  net::wire::Header header;
  header.mutable_update()->set_round(1);
  const net::Bytes head = header_bytes(header);
  for (const std::size_t arrived : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}}) {
    net::Bytes more = head;
    more.resize(head.size() + arrived);
    const net::Bytes bytes = announcement(head.size(), std::uint64_t{1} << 32, more);
    std::string error;
    const std::int64_t held = test::most_held([&] { error = error_of_reading(bytes, std::uint64_t{1} << 36); });
    EXPECT_THAT(error, HasSubstr("End of file"));
    EXPECT_LE(held, 1 << 20) << arrived << " bytes have arrived";
    EXPECT_GT(held, 1000) << "nothing was counted";
  }
}

TEST(FrameLimits, MemoryGrowsWithTheBytesThatArrive) {
  net::wire::Header header;
  header.mutable_update()->set_round(1);
  const net::Bytes head = header_bytes(header);
  constexpr std::size_t kArrived = 10'000'000;
  net::Bytes more = head;
  more.resize(head.size() + kArrived);
  const net::Bytes bytes = announcement(head.size(), std::uint64_t{1} << 32, more);
  const std::int64_t held = test::most_held([&] { static_cast<void>(error_of_reading(bytes, std::uint64_t{1} << 36)); });
  EXPECT_LE(held, static_cast<std::int64_t>(3 * kArrived + (1 << 20)));
}

TEST(FrameLimits, APeerThatIsNotReadySendsSmallHeadersAndNoPayload) {
  const net::FrameLimits before = net::limits_of_peer(false, 1000), ready = net::limits_of_peer(true, 1000);
  EXPECT_THAT(error_of_reading(announcement(65537, 0), before), HasSubstr("a header announces 65537 bytes; at most 65536"));
  EXPECT_THAT(error_of_reading(announcement(65536, 0), before), HasSubstr("End of file"));
  EXPECT_THAT(error_of_reading(announcement(2, 1), before), HasSubstr("a frame announces 1 bytes; at most 0"));
  EXPECT_THAT(error_of_reading(announcement(4097, 0), ready), HasSubstr("a header announces 4097 bytes; at most 4096"));
  EXPECT_THAT(error_of_reading(announcement(2, 1001), ready), HasSubstr("a frame announces 1001 bytes; at most 1000"));
}

// Groups of an unknown field within each other. A group of field 20 begins with the bytes 163 and 1, and ends with 164 and 1.
net::Bytes nested_groups(std::size_t depth) {
  net::Bytes nested;
  for (std::size_t i = 0; i < depth; ++i) nested.insert(nested.end(), {std::byte{0xa3}, std::byte{1}});
  for (std::size_t i = 0; i < depth; ++i) nested.insert(nested.end(), {std::byte{0xa4}, std::byte{1}});
  return nested;
}

TEST(FrameLimits, NestedHeadersAreRefused) {
  net::wire::Header header;
  header.mutable_heartbeat();
  for (const std::size_t depth : {std::size_t{1}, std::size_t{50}}) {
    net::Bytes bytes = nested_groups(depth);
    const net::Bytes tail = header_bytes(header);
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    EXPECT_THROW(static_cast<void>(net::parse_header(bytes)), net::ProtocolError) << "a field beside the message, " << depth << " deep";
  }
  net::Bytes inside = nested_groups(10'000);                                                         // 40,000 bytes
  inside.insert(inside.begin(), {std::byte{0x7a}, std::byte{0xc0}, std::byte{0xb8}, std::byte{2}});  // of a heartbeat
  EXPECT_THROW(static_cast<void>(net::parse_header(inside)), net::ProtocolError);
  header.mutable_hello()->add_clients()->set_last(3);
  EXPECT_EQ(net::parse_header(header_bytes(header)).hello().clients(0).last(), 3U);
}

// A text that announces 40 MB and has no bytes.
TEST(FrameLimits, AnAnnouncedTextTakesNoMemory) {
  const net::Bytes text{std::byte{0x0a}, std::byte{0x80}, std::byte{0xb4}, std::byte{0x89}, std::byte{0x13}};  // field 1 of a goodbye
  net::Bytes bytes{std::byte{0x5a}, static_cast<std::byte>(text.size())};
  bytes.insert(bytes.end(), text.begin(), text.end());
  const std::int64_t held = test::most_held([&] { EXPECT_THROW(static_cast<void>(net::parse_header(bytes)), net::ProtocolError); });
  EXPECT_LE(held, 1 << 16);
}

std::string refusal_of(const net::wire::Header& header, std::size_t payload = 0) {
  try {
    net::check_frame_of_peer(header, payload);
  } catch (const net::ProtocolError& error) {
    return error.what();
  }
  return "";
}

TEST(FrameRules, FieldsOfAHelloAreBounded) {
  net::wire::Header header;
  for (int i = 0; i < net::kMostRanges; ++i) header.mutable_hello()->add_clients();
  header.mutable_hello()->set_token(std::string(16, 'x'));
  EXPECT_EQ(refusal_of(header), "");
  EXPECT_THAT(refusal_of(header, 1), HasSubstr("a payload of 1 bytes, and its kind has none"));
  header.mutable_hello()->add_clients();
  EXPECT_THAT(refusal_of(header), HasSubstr("the list of clients of a hello has a size of 4097; at most 4096"));
  header.mutable_hello()->clear_clients();
  header.mutable_hello()->set_build(std::string(1025, 'x'));
  EXPECT_THAT(refusal_of(header), HasSubstr("the name of a build has a size of 1025"));
  header.mutable_hello()->clear_build();
  header.mutable_hello()->set_token("short");
  EXPECT_THAT(refusal_of(header), HasSubstr("the token of a hello has 5 bytes instead of 16"));
}

TEST(FrameRules, OtherFieldsAreBounded) {
  net::wire::Header header;
  for (int i = 0; i < 5; ++i) header.mutable_norms()->add_values(1);
  EXPECT_THAT(refusal_of(header), HasSubstr("six numbers"));
  header.mutable_norms()->add_values(1);
  EXPECT_EQ(refusal_of(header), "");
  header.mutable_goodbye()->set_reason(std::string(1025, 'x'));
  EXPECT_THAT(refusal_of(header), HasSubstr("the reason of a goodbye"));
  header.mutable_update()->set_round(1);
  EXPECT_EQ(refusal_of(header, 5), "");
  header.mutable_run_end();
  EXPECT_THAT(refusal_of(header), HasSubstr("only a server sends"));
}

}  // namespace
}  // namespace fl
