// The wire format defines the exact bits of payloads. This comment and those of positions.hpp, values.hpp, level_coder.hpp and
// bit_stream.hpp specify it.
//
//   message   = version:2 (= 3)  silent:1  [gamma(channels)  { channel }  [beside, raw in the run's precision]]  zeros up to a whole
//               byte
//   channel   = [silent:1, only if channels > 1]  positions:1 (0 all, 1 list)  values:3 (0 fp64, 1 fp32, 2 fp16, 3 levels, 4 bf16;
//               5 factors, with positions 0; 6 with positions 0: two channels follow, and the receiver adds their vectors)
//               [plain:1 and extras:1, see below]  [header of levels]  { segment }  [coded levels]
//               [excluded values, raw in the run's precision]
//   segment   = [positions, if list]  [the format's scales, raw in the run's precision, if the segment sends anything]
//               raw values or levels of the entries sent, ascending; nothing if the levels are coded;
//               factors of rank r: gamma(r + 1), then L [n,r] and R [m,r], raw in the run's precision
//
// coded     the levels of all segments in an entropy code, used if that makes the message shorter than levels of fixed width.
// silent    the sender sends nothing in this phase: set in the message if all its channels are silent (one byte in total), else in the
//           channel.
// known     properties of levels that follow from the scenario and the round (KnownLevels), above all their unit. They are not transmitted;
//           the receiver gets them from its own operator (Compressor::known_levels).
// segments  are not sent: both sides build the scope from the scenario, and the receiver knows the length of each channel's vector. If that
//           length differs from the scope's P (a phase with its own shape), the vector is plain: one segment 0 .. length-1.
// beside      values of averaged parameters (running statistics), absent if the message is silent. Both sides know their number.
// plain     sent only if the length is P, segments leave out parameters and positions = all: 1 if the vector is plain nevertheless.
// extras    sent only if tensors are excluded and the vector is not plain: 1 if their values follow.
// A Top-1 message of 500 doubles takes 8 + 3 + 3 + 9 + 64 bits: 11 bytes. A dense vector of P floats takes 1 + 4P bytes.
//
// encoded_bits() computes the length of encode()'s output without producing it: one pass over the levels, one over the positions if there
// is a list, O(1) for raw values. Tests verify that the two lengths are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::codec {

// Counts taken where a message lies (device_tally.hpp). They give its exact length without reading it again, and show whether it is finite.
struct Tally {
  std::span<const std::uint32_t> levels;     // how often each level occurs, from min_level on; empty: not counted
  std::span<const std::uint64_t> positions;  // [S] bits that the positions of each segment take; empty: not counted
  bool has_magnitudes = false;               // largest magnitude of each kind below; infinite if one is not finite, 0 if there are none
  double largest_value = 0, largest_scale = 0, largest_excluded = 0;
};

// One channel of a message, with the facts that both sides know from the scenario.
template <class T>
struct Channel {
  const Payload<T>* payload = nullptr;
  const Scope* scope = nullptr;
  Tally tally = {};  // used for lengths; encode() needs none
  MessageLevels levels = {};
};

// Returns whether all channels are silent; the message is then only a header.
template <class T>
[[nodiscard]] FL_API bool is_silent(std::span<const Channel<T>> channels);

// Throws Error for a payload whose sizes contradict its scope.
template <class T>
FL_API void check_message(const Payload<T>& message, const Scope& scope);

// Returns the exact length in bits, a multiple of 8, including the header and `num_beside` values after the channels. of_channel:
// empty, or [channels] that receive the bits of each channel, without header and these values. Throws Error for a payload that contradicts
// its scope.
template <class T>
[[nodiscard]] FL_API std::uint64_t encoded_bits(std::span<const Channel<T>> channels, std::span<std::uint64_t> of_channel = {},
                                                std::size_t num_beside = 0);

// Writes the encoded bytes to `out` and replaces its content. Throws Error like encoded_bits(), and for levels outside their format.
template <class T>
FL_API void encode(std::span<const Channel<T>> channels, std::vector<std::byte>& out, std::span<const T> beside = {});

// Decodes payloads from untrusted bytes. It reads nothing past the end, takes time proportional to the vectors and the bytes, and holds at
// most 4 D + 16 B + 64 KiB of memory at any time, where D is the size of the vectors (8 or 4 bytes for each of `lengths`, counted twice for
// a channel that is the sum of two) and B is the number of bytes received. It refuses numbers that are not finite (finite.hpp). The
// receiver passes the scope, the vector length and the known levels (empty: nothing is known) of each channel. `payloads` are overwritten,
// and must not be used if the bytes are refused. `beside` is filled unless the message is silent. Levels are stored in the narrowest
// width that holds their format; scales have rows only for segments that send anything. Returns the number of bits read, or the reason for
// refusal with the bit near which it was found.
template <class T>
[[nodiscard]] FL_API Result<std::uint64_t> decode(std::span<const std::byte> bytes, std::span<const Scope* const> scopes,
                                                  std::span<const std::size_t> lengths, std::span<Payload<T>* const> payloads,
                                                  std::span<const MessageLevels> levels = {}, std::span<T> beside = {});

// Returns the entropy bound in bits: log2 C(n,k) for the positions of each segment, plus raw values at their width, or levels at the
// empirical entropy of the message's levels, plus scales and excluded values at full width. Headers do not count.
template <class T>
[[nodiscard]] FL_API double entropy_bits(const Payload<T>& payload, const Scope& scope, const Tally& tally = {});

// Returns log2 of the binomial coefficient n! / (k! (n-k)!), or 0 if k > n.
[[nodiscard]] FL_API double log2_binomial(std::uint64_t n, std::uint64_t k);

extern template void check_message<float>(const Payload<float>&, const Scope&);
extern template void check_message<double>(const Payload<double>&, const Scope&);
extern template bool is_silent<float>(std::span<const Channel<float>>);
extern template std::uint64_t encoded_bits<float>(std::span<const Channel<float>>, std::span<std::uint64_t>, std::size_t);
extern template void encode<float>(std::span<const Channel<float>>, std::vector<std::byte>&, std::span<const float>);
extern template Result<std::uint64_t> decode<float>(std::span<const std::byte>, std::span<const Scope* const>, std::span<const std::size_t>,
                                                    std::span<Payload<float>* const>, std::span<const MessageLevels>, std::span<float>);
extern template bool is_silent<double>(std::span<const Channel<double>>);
extern template std::uint64_t encoded_bits<double>(std::span<const Channel<double>>, std::span<std::uint64_t>, std::size_t);
extern template void encode<double>(std::span<const Channel<double>>, std::vector<std::byte>&, std::span<const double>);
extern template Result<std::uint64_t> decode<double>(std::span<const std::byte>, std::span<const Scope* const>,
                                                     std::span<const std::size_t>, std::span<Payload<double>* const>,
                                                     std::span<const MessageLevels>, std::span<double>);
extern template double entropy_bits<float>(const Payload<float>&, const Scope&, const Tally&);
extern template double entropy_bits<double>(const Payload<double>&, const Scope&, const Tally&);

}  // namespace fl::codec
