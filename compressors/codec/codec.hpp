// The wire format: a Payload as bits, exactly.
//
//   message   = version:3 silent:1 channels:4 { channel } pad to a whole byte
//   channel   = positions:1 values:2 [level format] length:gamma { segment } excluded values
//   segment   = list: count:gamma(count+1), code:2 (rice, gamma, bitmap), rice parameter:5, positions, values      all: values
//   values    = raw bits of the format, or scale (native precision) and fixed-width levels
// Position codes work on gaps (first index, then index - previous - 1) within the segment; the cheapest is chosen per segment, exactly.
// encoded_bits() is the length that encode() produces, computed without producing it; tests hold them equal for every operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/error.hpp"
#include "fl_core/layer_table.hpp"
#include "fl_core/payload.hpp"

namespace fl::codec {

// One channel of a message as the receiver expects it: both sides know the scope from the scenario.
template <class T>
struct Channel {
  const Payload<T>* payload = nullptr;
  const Scope* scope = nullptr;
};

// Exact length in bits, header included, a multiple of 8.
template <class T>
[[nodiscard]] std::uint64_t encoded_bits(std::span<const Channel<T>> channels);

// The bytes. Replaces the content of `out`.
template <class T>
void encode(std::span<const Channel<T>> channels, std::vector<std::byte>& out);

// Payloads from bytes that are not trusted: never reads past the end, never allocates more than the scope allows. The receiver states
// the scope and the message length of each channel; `payloads` are overwritten. Returns the number of bits read or the reason.
template <class T>
[[nodiscard]] Result<std::uint64_t> decode(std::span<const std::byte> bytes, std::span<const Scope* const> scopes,
                                           std::span<const std::size_t> lengths, std::span<Payload<T>* const> payloads);

// The entropy bound in bits: supports log2 C(n,k) plus value bits; levels n x empirical entropy plus scales. No header.
template <class T>
[[nodiscard]] double entropy_bits(const Payload<T>& payload, const Scope& scope);

// log2 of the binomial coefficient.
[[nodiscard]] double log2_binomial(std::uint64_t n, std::uint64_t k);

}  // namespace fl::codec
