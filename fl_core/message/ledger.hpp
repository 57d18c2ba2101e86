// Counts all bits that cross the network, by four separate definitions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

// One message, or a sum of messages.
struct BitCount {
  std::uint64_t elements = 0;  // values sent
  double published = 0;        // according to the method's paper
  double entropy = 0;          // lower bound for an ideal code
  std::uint64_t bits = 0;      // exact length of the encoding, including the header; reports call this "bits"
  BitCount& operator+=(const BitCount& other) {
    elements += other.elements;
    published += other.published;
    entropy += other.entropy;
    bits += other.bits;
    return *this;
  }
};

// The content of downlink messages: the changes of the model, the whole model, or a compressed difference.
enum class DownSends : std::uint8_t { changes, model, difference };

// Causes of downlink bits.
enum class DownCause : std::uint8_t {
  model,         // a dense model: at first contact, and whenever nothing else is shorter
  changes,       // the changes since the previous round, or a compressed difference
  catch_up,      // additional bits for clients that missed rounds
  phase_means,   // means in the middle of a round
  slots,         // shared slots that are broadcast
  missed_slots,  // derived shared slots, for clients that missed a round
  absence,       // the error memory that replaces the one of an absent client
};
inline constexpr std::size_t kNumDownCauses = 7;
[[nodiscard]] constexpr const char* to_string(DownCause cause) {
  constexpr const char* kNames[kNumDownCauses] = {"model", "changes", "catch_up", "phase_means", "slots", "missed_slots", "absence"};
  return kNames[static_cast<std::size_t>(cause)];
}

// Causes of uplink bits other than the channels of messages with content.
enum class UpCause : std::uint8_t {
  headers,   // of messages, including padding to whole bytes
  silence,   // silent messages
  absence,   // error memories that clients send so that their mean can replace the memories of absent clients
  averaged,  // values of averaged parameters, raw beside the message
};
inline constexpr std::size_t kNumUpCauses = 4;
[[nodiscard]] constexpr const char* to_string(UpCause cause) {
  // Tables of results have these names: today's averaged parameters are running statistics.
  constexpr const char* kNames[kNumUpCauses] = {"headers", "silence", "absence", "statistics"};
  return kNames[static_cast<std::size_t>(cause)];
}
// Number of channels whose bits are counted separately. The last one includes all further channels.
inline constexpr std::size_t kMostCountedChannels = 4;
using ChannelBits = std::array<std::uint64_t, kMostCountedChannels>;

// Totals per round, per client and per cause, for uplink and downlink.
class FL_API Ledger {
 public:
  explicit Ledger(std::size_t num_clients) : per_client_up_bits_(num_clients), per_client_down_bits_(num_clients) {}
  // Counts a message. `channels` are its bits per channel and `averaged` its bits of averaged parameters; the remaining bits are the
  // header.
  void count_message(std::uint32_t client, const BitCount& message, const ChannelBits& channels, std::uint64_t averaged = 0) {
    std::uint64_t said = averaged;
    up_causes_[static_cast<std::size_t>(UpCause::averaged)] += averaged;
    for (std::size_t c = 0; c < kMostCountedChannels; ++c) {
      said += channels[c];
      channels_[c] += channels[c];
    }
    count_up(client, message, said > 0 ? UpCause::headers : UpCause::silence, message.bits - said);
  }
  // Counts uplink bits of another cause.
  void count_up(std::uint32_t client, const BitCount& message, UpCause cause) { count_up(client, message, cause, message.bits); }
  void count_down(std::uint32_t client, std::uint64_t bits, DownCause cause) {
    down_bits_ += bits;
    down_causes_[static_cast<std::size_t>(cause)] += bits;
    per_client_down_bits_[client] += bits;
  }
  void open_round() {
    up_ = {};
    channels_ = {};
    up_causes_ = {};
    down_bits_ = 0;
    down_causes_ = {};
  }
  void close_round() {
    total_up_ += up_;
    total_down_bits_ += down_bits_;
    for (std::size_t i = 0; i < kMostCountedChannels; ++i) total_channels_[i] += channels_[i];
    for (std::size_t i = 0; i < kNumUpCauses; ++i) total_up_causes_[i] += up_causes_[i];
    for (std::size_t i = 0; i < kNumDownCauses; ++i) total_down_causes_[i] += down_causes_[i];
  }
  [[nodiscard]] const BitCount& round_up() const { return up_; }
  [[nodiscard]] std::uint64_t round_down_bits() const { return down_bits_; }
  [[nodiscard]] const ChannelBits& round_channel_bits() const { return channels_; }
  [[nodiscard]] const ChannelBits& total_channel_bits() const { return total_channels_; }
  [[nodiscard]] std::uint64_t round_up_bits(UpCause cause) const { return up_causes_[static_cast<std::size_t>(cause)]; }
  [[nodiscard]] std::uint64_t total_up_bits(UpCause cause) const { return total_up_causes_[static_cast<std::size_t>(cause)]; }
  [[nodiscard]] std::uint64_t round_down_bits(DownCause cause) const { return down_causes_[static_cast<std::size_t>(cause)]; }
  [[nodiscard]] std::uint64_t total_down_bits(DownCause cause) const { return total_down_causes_[static_cast<std::size_t>(cause)]; }
  [[nodiscard]] const BitCount& total_up() const { return total_up_; }
  [[nodiscard]] std::uint64_t total_down_bits() const { return total_down_bits_; }
  [[nodiscard]] const std::vector<std::uint64_t>& client_up_bits() const { return per_client_up_bits_; }
  [[nodiscard]] const std::vector<std::uint64_t>& client_down_bits() const { return per_client_down_bits_; }
  // Saves or restores the totals. Call it between rounds.
  void persist(Archive& archive) {
    archive.section("ledger");
    archive.value(total_up_);
    archive.value(total_down_bits_);
    archive.value(total_channels_);
    archive.value(total_up_causes_);
    archive.value(total_down_causes_);
    archive.array(std::span(per_client_up_bits_));
    archive.array(std::span(per_client_down_bits_));
  }

 private:
  void count_up(std::uint32_t client, const BitCount& message, UpCause cause, std::uint64_t bits_of_cause) {
    up_ += message;
    up_causes_[static_cast<std::size_t>(cause)] += bits_of_cause;
    per_client_up_bits_[client] += message.bits;
  }

  BitCount up_, total_up_;
  std::uint64_t down_bits_ = 0, total_down_bits_ = 0;
  ChannelBits channels_{}, total_channels_{};
  std::array<std::uint64_t, kNumUpCauses> up_causes_{}, total_up_causes_{};
  std::array<std::uint64_t, kNumDownCauses> down_causes_{}, total_down_causes_{};
  std::vector<std::uint64_t> per_client_up_bits_, per_client_down_bits_;
};

}  // namespace fl
