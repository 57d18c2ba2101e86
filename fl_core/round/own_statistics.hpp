// Running statistics of batch normalisation that stay with the clients: FedBN (X. Li, M. Jiang, X. Zhang, M. Kamp, Q. Dou, "FedBN:
// federated learning on non-IID features via local batch normalization", ICLR 2021), its statistics alone.
//
// A client computes with its own and sends none. They move with its work, whether or not its message says something; a client whose work is
// refused keeps what it had, and so does one that is absent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/state/client_state.hpp"
#include "fl_core/state/shared_state.hpp"

namespace fl {

// Slots of S entries: the clients' own, of those of whom a round has counted; what all others have, of the model that the run starts from;
// and the mean of all clients' by their weights w_i, for measures.
inline constexpr const char* kOwnStatistics = "own_statistics";
inline constexpr const char* kInitialStatistics = "initial_statistics";
inline constexpr const char* kMeanStatistics = "mean_statistics";

[[nodiscard]] inline std::vector<SlotSpec> own_statistics_slots(std::size_t S) {
  return {{.name = kOwnStatistics, .owner = SlotOwner::client, .length = S},
          {.name = kInitialStatistics, .owner = SlotOwner::shared, .sync = SlotSync::initial, .length = S},
          {.name = kMeanStatistics, .owner = SlotOwner::server, .length = S}};
}

// out [S] = what the client has, where `stored` [S] is its row of kOwnStatistics.
template <class T>
void read_own_statistics(const ClientState<T>& state, const SharedState<T>& shared, std::uint32_t client, const T* stored, T* out) {
  const std::span<const T> initial = shared.slot(kInitialStatistics);
  std::copy_n(state.acknowledged(client) == 0 ? initial.data() : stored, initial.size(), out);
}

}  // namespace fl
