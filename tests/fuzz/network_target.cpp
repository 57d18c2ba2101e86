// Fuzz targets for the data that a server reads from its peers.
//
// net_frames   A stream of bytes, in pieces of the size that the first byte states, with the limits that the second one chooses. Frames are
//              read until one is refused or the stream ends. Memory stays within a multiple of the bytes that arrived, and a frame that
//              was read is the same after it was written and read again.
// net_header   The bytes of one header. If it is read and accepted as a peer's, its fields are within the rules, and it is the same after
//              it was written and read again.
#include <algorithm>
#include <array>
#include <cstring>

#include "fl_core/state/checksum.hpp"
#include "net/transport/stream.hpp"
#include "net/wire/frame_rules.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/memory_connection.hpp"
#include "tests/support/most_held.hpp"

namespace {

namespace net = fl::net;
using fl::fuzz::require;

// Returns the frame as it is written.
net::Bytes bytes_of(const net::Frame& frame) {
  const std::span<const std::byte> payload(frame.payload.data(), frame.payload.size());
  const net::OutgoingFrame made = net::make_frame(frame.header, {std::make_shared<const net::Bytes>(payload.begin(), payload.end())});
  net::Bytes bytes = made.head;
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

// Reads all frames of a stream. Returns their number and adds their bytes to `again`.
std::size_t read_all(std::span<const std::byte> bytes, std::size_t piece, const net::FrameLimits& limits, net::Bytes* again) {
  boost::asio::io_context io;
  fl::test::MemoryConnection connection(io, bytes, piece);
  net::FrameReader reader(connection);
  std::size_t frames = 0;
  const auto read = [&]() -> boost::asio::awaitable<void> {
    for (;;) {
      const net::Frame frame = co_await reader.read(limits);
      ++frames;
      require(frame.payload.size() <= limits.payload, "a payload is longer than its limit");
      if (again == nullptr) continue;
      const net::Bytes written = bytes_of(frame);
      again->insert(again->end(), written.begin(), written.end());
    }
  };
  try {
    if (const std::exception_ptr thrown = fl::test::run_to_end(io, read())) std::rethrow_exception(thrown);
  } catch (const net::ProtocolError& error) {
    require(*error.what() != '\0', "refused without a reason");
  } catch (const boost::system::system_error&) {  // the end of the stream
  }
  return frames;
}

// Returns a stream of frames in their stored form (8 bytes of sizes, header, payload) with checksums, which a search for inputs could not
// guess. A frame whose end is missing has a wrong one of its bytes.
net::Bytes with_checksums(std::span<const std::byte> stream) {
  net::Bytes bytes;
  while (stream.size() >= net::kSizesBytes) {
    std::uint64_t sizes = 0;
    std::memcpy(&sizes, stream.data(), sizeof sizes);
    const std::span<const std::byte> content = stream.subspan(net::kSizesBytes);
    const std::size_t header = std::min<std::size_t>(content.size(), sizes & 0xffffffu);
    const std::size_t payload = std::min<std::uint64_t>(content.size() - header, sizes >> 24);
    fl::Hash64 hash;
    const std::uint64_t checksum = hash.add(content.first(header)).add_value(fl::hash64_of(content.subspan(header, payload))).value();
    std::array<std::byte, net::kPrefixBytes> prefix{};
    std::memcpy(prefix.data(), &sizes, sizeof sizes);
    std::memcpy(prefix.data() + 8, &checksum, sizeof checksum);
    const auto check = static_cast<std::uint32_t>(fl::hash64_of(std::span(prefix).first(16)));
    std::memcpy(prefix.data() + 16, &check, sizeof check);
    bytes.insert(bytes.end(), prefix.begin(), prefix.end());
    bytes.insert(bytes.end(), content.begin(), content.begin() + static_cast<std::ptrdiff_t>(header + payload));
    stream = content.subspan(header + payload);
  }
  return bytes;
}

void net_frames(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return;
  const std::size_t piece = 1 + std::to_integer<std::size_t>(bytes[0]);
  const auto choice = std::to_integer<unsigned>(bytes[1]);
  const std::uint64_t most_payload = std::uint64_t{1} << (choice >> 1 & 31);
  const net::FrameLimits limits = net::limits_of_peer((choice & 1) != 0, most_payload);
  const net::Bytes checked = (choice >> 6 & 1) == 0 ? with_checksums(bytes.subspan(2)) : net::Bytes(bytes.begin() + 2, bytes.end());
  const std::span<const std::byte> stream = checked;
  const std::int64_t held = fl::test::most_held([&] { static_cast<void>(read_all(stream, piece, limits, nullptr)); });
  // A list of empty ranges takes 2 bytes on the wire and a few dozen in memory.
  require(held <= static_cast<std::int64_t>(64 * stream.size() + (1 << 20)), "reading takes more memory than its bound");
  net::Bytes again;
  const std::size_t frames = read_all(stream, piece, limits, &again);
  require(read_all(again, 4096, net::FrameLimits(most_payload), nullptr) == frames, "frames are not read again as they were written");
}

void net_header(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::size_t payload = std::to_integer<std::size_t>(bytes[0]);
  bytes = bytes.subspan(1).first(std::min(bytes.size() - 1, net::kMostHelloBytes));
  try {
    const net::wire::Header header = net::parse_header(bytes);
    net::check_frame_of_peer(header, payload);
    require(payload == 0 || header.has_update() || header.has_memory() || header.has_partial_sums(),
            "a payload was accepted where none may be");
    require(header.hello().clients_size() <= net::kMostRanges, "a hello with too many ranges was accepted");
    require(!header.has_norms() || header.norms().values_size() == net::kNumNorms, "norms were accepted that are not six");
    const net::Bytes head = net::make_frame(header).head;
    const net::wire::Header again = net::parse_header(std::span(head).subspan(net::kPrefixBytes));
    require(again.SerializeAsString() == header.SerializeAsString(), "the header changed");
  } catch (const net::ProtocolError& error) {
    require(*error.what() != '\0', "refused without a reason");
  }
}

const fl::fuzz::Register kNetFrames("net_frames", net_frames);
const fl::fuzz::Register kNetHeader("net_header", net_header);

}  // namespace
