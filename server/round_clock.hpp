// The clock of simulated time. It knows no machine: a round lasts as long as the bits of its messages, the rates of devices and links and
// the stated costs of computing say.
//
//   a client    receives the model -> computes -> makes its message -> sends it          (in a later phase: receives a mean, makes, sends)
//   the server  sends to all at once; closes a phase when its delivery policy says so; adds the messages; steps
// Times are seconds since the beginning of the run. docs/devices.md has the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/state/archive.hpp"
#include "server/delivery_policy.hpp"
#include "timing/availability.hpp"
#include "timing/client_work.hpp"
#include "timing/devices.hpp"
#include "timing/network.hpp"
#include "timing/round_timeline.hpp"
#include "timing/transfers.hpp"

namespace fl {

// The server's own machine and link.
struct ServerRates {
  DeviceRates device{};
  double down = std::numeric_limits<double>::infinity();  // bit/s to all clients together
  double up = std::numeric_limits<double>::infinity();    // bit/s from all clients together
};

// The parts of a clock. All outlive it.
struct ClockParts {
  const Devices& devices;
  const Network& network;
  const Availability& availability;
  const ClientWork& work;
  const DeliveryPolicy& delivery;
  ServerRates server{};
  std::uint64_t seed = 1;  // of jitter
};

// A message that is alone on its links.
struct LoneMessage {
  double ends_s = 0;    // it arrives, or the client leaves
  bool arrives = true;  // false: the client leaves before
  ClientTimes times{};
};

class FL_API RoundClock {
 public:
  explicit RoundClock(const ClockParts& parts) : parts_(parts) {}

  [[nodiscard]] double now_s() const { return now_s_; }
  // Returns the last round. A round without clients has no members.
  [[nodiscard]] const RoundTimeline& last() const { return last_; }

  // Waits until a member of the cohort can be reached, and returns 1 for each member that can. If none of them ever can, it waits for none.
  [[nodiscard]] std::vector<std::uint8_t> wait_for_any(std::span<const std::uint32_t> cohort);
  // Opens a round for a cohort. `awaited`: the number of messages that it is made for; 0 = those of all. `down_bits` [M] are sent to each.
  void open(std::uint32_t round, std::span<const std::uint32_t> cohort, std::size_t awaited, std::span<const std::uint64_t> down_bits);
  // Sends the mean of a phase to the clients.
  void send_mean(std::span<const std::uint64_t> down_bits);
  // Closes a phase in which the clients send `up_bits` [M]. is_sent [M] is 0 for a client that has nothing to send. Returns 1 for each
  // message that counts. has_left() says afterwards whose messages were not sent at all.
  [[nodiscard]] std::span<const std::uint8_t> close_phase(int phase, std::span<const std::uint64_t> up_bits,
                                                          std::span<const std::uint8_t> is_sent);
  [[nodiscard]] bool has_left(std::size_t position) const { return has_left_[position] != 0; }
  // Ends the round with the server's step.
  void close();
  // Notes a round without clients, which takes no time.
  void skip();
  // Clients [M] of the last round send these bits after it has closed; the server waits for them.
  void send_after(std::span<const std::uint64_t> up_bits);

  // The same for a server that does not wait: a client begins now, and no two messages share a link. `round` numbers the draws of jitter.
  [[nodiscard]] bool is_here(std::uint32_t client) const { return parts_.availability.is_here(client, now_s_); }
  [[nodiscard]] LoneMessage alone(std::uint32_t client, std::uint32_t round, std::uint64_t down_bits, std::uint64_t up_bits) const;
  // Goes on to a time, unless the server is busy until a later one.
  void advance_to(double time_s) { now_s_ = time_s > now_s_ ? time_s : now_s_; }
  // Lets the server add the messages of a buffer, `bits` in all, and step. Their times become those of the last round.
  void close_buffer(RoundTimeline times, double bits);

  // Writes or reads the time between two rounds.
  void persist(Archive& archive);

 private:
  struct OpenRound {
    std::uint32_t round = 0;
    std::size_t awaited = 0;
    std::vector<double> ready_s{};           // [M] from when on each client works on its next message
    std::vector<double> until_s{};           // [M] when each client leaves
    std::vector<std::uint8_t> counts{};      // [M] all of its messages so far
    std::vector<std::uint8_t> phase_said{};  // [M] by the policy, in this phase
  };
  [[nodiscard]] double delay(std::uint32_t client, std::uint32_t round, int message, double now_s) const;
  void receive(std::span<const std::uint64_t> down_bits, int message);
  void decide();

  const ClockParts parts_;
  double now_s_ = 0;
  RoundTimeline last_;
  OpenRound open_;
  std::vector<std::uint8_t> has_left_;
};

}  // namespace fl
