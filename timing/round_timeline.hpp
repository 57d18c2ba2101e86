// A round in simulated time, client by client: seconds since the beginning of the run.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace fl {

// A client's link. A message of b bits needs  latency_s + u jitter_s + b / (rate (1 - loss))  seconds, u uniform in [0, 1): lost packets
// are sent again, and their expected number is 1 / (1 - loss) for each.
struct LinkRates {
  double down = std::numeric_limits<double>::infinity();  // bit/s to the client
  double up = std::numeric_limits<double>::infinity();    // bit/s from the client
  double latency_s = 0, jitter_s = 0;                     // one way
  double loss = 0;                                        // share of the packets that are lost, 0 <= loss < 1

  friend bool operator==(const LinkRates&, const LinkRates&) = default;
};

// A client in a round: seconds by cause and bits, over all phases. It waits for the rest of the round.
struct ClientTimes {
  double down_s = 0, compute_s = 0, message_s = 0, up_s = 0;  // message: everything from its vectors to its message
  double arrived_s = 0;                                       // time at which its last message arrived; infinite: it has left
  double down_bits = 0, up_bits = 0;
  LinkRates link{};  // when the round opened
};

struct RoundTimeline {
  double opened_s = 0, closed_s = 0, ended_s = 0;  // it is closed when its last phase is, and ends with the server's step
  std::vector<std::uint32_t> cohort{};
  std::vector<ClientTimes> clients{};  // [M]
  // The end of the round for a clock that counts 32 bits for every value that is sent and a dense model down, as simulators do that divide
  // the size of a model by a ratio; NaN: not computed.
  double by_ratio_s = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace fl
