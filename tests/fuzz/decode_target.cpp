// Decodes bytes of a peer. The first two bytes choose the receiver's expectations (precision, scope, length, channels, known levels); the
// rest is the message. Decoding stays within its memory bound. An accepted message is finite, can be sent again and then gives the same
// numbers.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "tests/compressors/codec/random_payload.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/most_held.hpp"

namespace {

using fl::Payload;
using fl::Scope;
using fl::fuzz::require;
namespace codec = fl::codec;

struct Expected {
  Scope scope;
  std::size_t length;
  std::size_t num_statistics;  // side values behind the channels
};

// Tensors of a network: a matrix, a vector, one that is excluded, running statistics, a matrix again.
Scope tensor_scope(std::size_t size) {
  Scope scope{.kind = fl::ScopeKind::tensor, .segments = {}, .excluded = {}, .P = size};
  const std::size_t cols = 5, rows = size / 12;
  std::size_t at = 0;
  const auto add = [&](std::vector<fl::Segment>& list, std::size_t n, std::size_t m) {
    if (n * m == 0 || at + n * m > size) return;
    list.push_back({.begin = at, .end = at + n * m, .rows = n, .cols = m});
    at += n * m;
  };
  add(scope.segments, rows, cols);
  add(scope.segments, rows, 1);
  add(scope.excluded, size / 50, 1);
  add(scope.unshared, size / 60, 2);
  add(scope.segments, cols, rows);
  add(scope.segments, size - at, 1);
  return scope;
}

Expected expected_by(unsigned choice) {
  static constexpr std::array<std::size_t, 8> kLengths = {0, 1, 2, 63, 64, 65, 500, 5000};
  static constexpr std::array<std::size_t, 4> kPieces = {0, 5, 64, 1000};
  const std::size_t length = kLengths[choice & 7];
  const bool own_shape = (choice >> 6 & 1) != 0, has_tensors = (choice >> 7 & 1) != 0;
  const std::size_t P = own_shape ? 2 * length + 3 : length;
  if (has_tensors) return {.scope = tensor_scope(P), .length = length, .num_statistics = 3};
  return {.scope = fl::test::any_scope(P, kPieces[choice >> 3 & 3], (choice >> 5 & 1) != 0), .length = length, .num_statistics = 0};
}

template <class T>
void use(const Payload<T>& message, const Expected& expected, std::vector<T>& dense) {
  dense.assign(expected.length, T(0));  // also where statistics are, which no message writes
  fl::write_dense(message, expected.scope, dense.data());
  for (const T x : dense) require(std::isfinite(x), "an entry that was accepted is not finite");
  std::vector<double> sum(expected.length);
  const std::size_t half = expected.length / 2;
  fl::accumulate(message, expected.scope, 0.5, 0, half, sum.data());
  fl::accumulate(message, expected.scope, 0.5, half, expected.length, sum.data());
  require(codec::entropy_bits(message, expected.scope) >= 0, "the entropy bound is negative");
}

// Nothing, a whole format, or a format with one part that travels.
fl::MessageLevels known_by(unsigned choice) {
  const std::vector<fl::LevelFormat> formats = fl::test::level_formats();
  if (choice == 0) return {};
  if (choice <= formats.size()) return fl::all_known(formats[choice - 1]);
  if (choice == formats.size() + 1) return fl::all_known_but(fl::KnownLevels::Travels::top, {.unit = 0.3, .has_scale = false});
  return fl::all_known_but(fl::KnownLevels::Travels::min_exponent, {.map = fl::LevelMap::power_of_two, .min_level = -7, .bits = 4});
}

template <class T>
std::vector<codec::Channel<T>> channels_of(const std::vector<Payload<T>>& payloads, const Expected& expected,
                                           const fl::MessageLevels& known) {
  std::vector<codec::Channel<T>> channels;
  for (const Payload<T>& payload : payloads)
    channels.push_back({.payload = &payload, .scope = &expected.scope, .tally = {}, .levels = known});
  return channels;
}

template <class T>
void decode_one(std::span<const std::byte> bytes, unsigned choice, std::size_t num_channels, const fl::MessageLevels& known) {
  const Expected expected = expected_by(choice);
  std::vector<Payload<T>> first(num_channels), again(num_channels);
  std::vector<Payload<T>*> first_pointers, again_pointers;
  for (Payload<T>& payload : first) first_pointers.push_back(&payload);
  for (Payload<T>& payload : again) again_pointers.push_back(&payload);
  const std::vector<const Scope*> scopes(num_channels, &expected.scope);
  const std::vector<std::size_t> lengths(num_channels, expected.length);
  const std::vector<fl::MessageLevels> levels(num_channels, known);
  std::vector<T> side(expected.num_statistics), side_again(side.size());
  std::optional<fl::Result<std::uint64_t>> result;
  const std::int64_t held =
      fl::test::most_held([&] { result.emplace(codec::decode<T>(bytes, scopes, lengths, first_pointers, levels, std::span<T>(side))); });
  std::size_t vectors = num_channels;
  for (const Payload<T>& payload : first) vectors += payload.rest != nullptr ? 1 : 0;
  require(held <= static_cast<std::int64_t>(4 * vectors * expected.length * sizeof(T) + 16 * bytes.size() + 64 * 1024),
          "decoding takes more memory than its bound");
  if (!result->ok()) return require(!result->error().reason.empty(), "refused without a reason");
  const bool silent = codec::is_silent<T>(channels_of(first, expected, known));
  for (const T x : side) require(silent || std::isfinite(x), "a statistic that was accepted is not finite");

  const std::vector<codec::Channel<T>> channels = channels_of(first, expected, known);
  std::vector<std::byte> encoded;
  codec::encode<T>(channels, encoded, side);
  require(8 * encoded.size() == codec::encoded_bits<T>(channels, {}, side.size()), "the computed length differs from the bytes");
  // A peer may know a better parameter of a code than the encoder looks for, but not a much better one.
  require(encoded.size() <= 2 * bytes.size() + 64 * num_channels, "the encoder is far longer than what it read");
  const auto read = codec::decode<T>(encoded, scopes, lengths, again_pointers, levels, std::span<T>(side_again));
  require(read.ok(), "the encoder's own bytes are refused");
  require(silent || side.empty() || std::memcmp(side.data(), side_again.data(), side.size() * sizeof(T)) == 0, "the statistics changed");
  std::vector<T> dense, dense_again;
  for (std::size_t c = 0; c < num_channels; ++c) {
    use(first[c], expected, dense);
    use(again[c], expected, dense_again);
    require(dense.empty() || std::memcmp(dense.data(), dense_again.data(), dense.size() * sizeof(T)) == 0, "the numbers changed");
  }
}

void decode(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return;
  const auto choice = std::to_integer<unsigned>(bytes[0]), format = std::to_integer<unsigned>(bytes[1]);
  const std::size_t num_channels = 1 + (format & 3);
  if ((format & 4) != 0) {
    decode_one<double>(bytes.subspan(2), choice, num_channels, known_by(format >> 3));
  } else {
    decode_one<float>(bytes.subspan(2), choice, num_channels, known_by(format >> 3));
  }
}

const fl::fuzz::Register kDecode("decode", decode);

}  // namespace
