// Counts the bits of a message for the ledger from its content. The sender and the receiver get equal counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "compressors/codec/codec.hpp"
#include "compressors/exchange.hpp"
#include "fl_core/message/ledger.hpp"

namespace fl {

// Adds the bits of one channel, except its encoded length. `message` is the transmitted form: as the operator made it, or as it arrived,
// before reconstruct() turns it into entries. `tally` holds the counts of this form, if they were taken.
template <class T>
void count_channel(const ExchangeChannel<T>& channel, const Payload<T>& message, const Scope& scope, const codec::Tally& tally,
                   BitCount& bits) {
  if (message.silent) return;
  bits.published += channel.compressor->published_bits(message, scope);
  bits.entropy += codec::entropy_bits(message.on_wire(), scope, tally);
}

// Adds values of averaged parameters, which are transmitted raw. Returns their bits.
template <class T>
std::uint64_t count_averaged(std::size_t num_averaged, BitCount& bits) {
  const std::uint64_t raw = 8 * sizeof(T) * num_averaged;
  bits.elements += num_averaged;
  bits.published += 32 * static_cast<double>(num_averaged);
  bits.entropy += static_cast<double>(raw);
  return raw;
}

// Adds the bits of the active channels to the counts per channel. Channels from kMostCountedChannels - 1 on share the last count.
inline void count_by_channel(std::span<const std::size_t> active_channels, std::span<const std::uint64_t> bits, ChannelBits& counted) {
  for (std::size_t i = 0; i < active_channels.size(); ++i) counted[std::min(active_channels[i], kMostCountedChannels - 1)] += bits[i];
}

}  // namespace fl
