#include "net/server/remote_round.hpp"

#include <map>

namespace fl::net {

void RemoteRound::open(const RoundOrder& order) {
  round = order.round;
  is_measured = order.measure;
  cohort = order.cohort;
  is_out.assign(cohort.size(), 0);
  is_absent.assign(cohort.size(), 0);
  hosts.clear();
  positions.clear();
  std::map<HostId, std::size_t> known;
  for (std::uint32_t i = 0; i < cohort.size(); ++i) {
    const auto [found, is_new] = known.try_emplace(host_of[i], hosts.size());
    if (is_new) {
      hosts.push_back(host_of[i]);
      positions.emplace_back();
    }
    positions[found->second].push_back(i);
  }
}

}  // namespace fl::net
