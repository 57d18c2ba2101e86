// The seconds of a round's messages with other ways of exchanging them than a server: closed forms for n workers that are
// connected by links of rate B (bit/s, of the slowest) and latency a (s, the largest), with messages of S bits (the longest) or S_i bits.
//
//   ring all-reduce   2 (n - 1) a + 2 (n - 1)/n S/B            for messages that can be added on the way
//   tree all-reduce   2 ceil(log2 n) (a + S/B)                 likewise: to a root and back
//   all-gather        (n - 1) a + (sum_i S_i - min_i S_i)/B    on a ring: every worker gets the messages of all others
// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
#pragma once

#include <span>

#include "fl_core/config/device.hpp"
#include "timing/round_timeline.hpp"

namespace fl {

// The numbers of these formulas for the clients of a round.
struct CollectiveSizes {
  double workers = 0;        // n
  double rate = 0;           // B
  double latency_s = 0;      // a
  double longest_bits = 0;   // S
  double shortest_bits = 0;  // min_i S_i
  double all_bits = 0;       // sum_i S_i
};
[[nodiscard]] FL_API CollectiveSizes collective_sizes(std::span<const ClientTimes> clients);

// Return seconds; 0 for fewer than two workers.
[[nodiscard]] FL_API double ring_all_reduce_s(const CollectiveSizes& sizes);
[[nodiscard]] FL_API double tree_all_reduce_s(const CollectiveSizes& sizes);
[[nodiscard]] FL_API double all_gather_s(const CollectiveSizes& sizes);

}  // namespace fl
