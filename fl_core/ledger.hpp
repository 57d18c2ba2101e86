// Every bit that crosses the network, counted four ways that are never mixed up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/archive.hpp"
#include "fl_core/device.hpp"

namespace fl {

// One message, or a sum of messages.
struct BitCount {
  std::uint64_t elements = 0;  // values sent
  double published = 0;        // as the method's paper counts
  double entropy = 0;          // lower bound of an ideal code
  std::uint64_t bits = 0;      // exact length of the encoding, header included: what "bits" means in every report
  BitCount& operator+=(const BitCount& other) {
    elements += other.elements;
    published += other.published;
    entropy += other.entropy;
    bits += other.bits;
    return *this;
  }
};

// Totals per round and per client, in both directions.
class FL_API Ledger {
 public:
  explicit Ledger(std::size_t num_clients) : per_client_up_bits_(num_clients), per_client_down_bits_(num_clients) {}
  void count_up(std::uint32_t client, const BitCount& message) {
    up_ += message;
    per_client_up_bits_[client] += message.bits;
  }
  void count_down(std::uint32_t client, std::uint64_t bits) {
    down_bits_ += bits;
    per_client_down_bits_[client] += bits;
  }
  void open_round() {
    up_ = {};
    down_bits_ = 0;
  }
  void close_round() {
    total_up_ += up_;
    total_down_bits_ += down_bits_;
  }
  [[nodiscard]] const BitCount& round_up() const { return up_; }
  [[nodiscard]] std::uint64_t round_down_bits() const { return down_bits_; }
  [[nodiscard]] const BitCount& total_up() const { return total_up_; }
  [[nodiscard]] std::uint64_t total_down_bits() const { return total_down_bits_; }
  [[nodiscard]] const std::vector<std::uint64_t>& client_up_bits() const { return per_client_up_bits_; }
  [[nodiscard]] const std::vector<std::uint64_t>& client_down_bits() const { return per_client_down_bits_; }
  // Between rounds.
  void persist(Archive& archive) {
    archive.section("ledger");
    archive.value(total_up_);
    archive.value(total_down_bits_);
    archive.array(std::span(per_client_up_bits_));
    archive.array(std::span(per_client_down_bits_));
  }

 private:
  BitCount up_, total_up_;
  std::uint64_t down_bits_ = 0, total_down_bits_ = 0;
  std::vector<std::uint64_t> per_client_up_bits_, per_client_down_bits_;
};

}  // namespace fl
