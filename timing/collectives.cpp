#include "timing/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fl {

CollectiveSizes collective_sizes(std::span<const ClientTimes> clients) {
  CollectiveSizes sizes{.rate = std::numeric_limits<double>::infinity(), .shortest_bits = std::numeric_limits<double>::infinity()};
  for (const ClientTimes& client : clients) {
    sizes.workers += 1;
    sizes.rate = std::min({sizes.rate, client.link.down * (1 - client.link.loss), client.link.up * (1 - client.link.loss)});
    sizes.latency_s = std::max(sizes.latency_s, client.link.latency_s);
    sizes.longest_bits = std::max(sizes.longest_bits, client.up_bits);
    sizes.shortest_bits = std::min(sizes.shortest_bits, client.up_bits);
    sizes.all_bits += client.up_bits;
  }
  return sizes;
}

double ring_all_reduce_s(const CollectiveSizes& s) {
  if (s.workers < 2) return 0;
  return 2 * (s.workers - 1) * s.latency_s + 2 * (s.workers - 1) / s.workers * s.longest_bits / s.rate;
}

double tree_all_reduce_s(const CollectiveSizes& s) {
  if (s.workers < 2) return 0;
  return 2 * std::ceil(std::log2(s.workers)) * (s.latency_s + s.longest_bits / s.rate);
}

double all_gather_s(const CollectiveSizes& s) {
  if (s.workers < 2) return 0;
  return (s.workers - 1) * s.latency_s + (s.all_bits - s.shortest_bits) / s.rate;
}

}  // namespace fl
