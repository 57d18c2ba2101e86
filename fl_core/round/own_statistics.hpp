// Running statistics of batch normalisation that stay with the clients: FedBN (X. Li, M. Jiang, X. Zhang, M. Kamp, Q. Dou, "FedBN:
// federated learning on non-IID features via local batch normalization", ICLR 2021), restricted to its statistics.
//
// A client computes with its own statistics and sends none. They change with its local work, even if its message is silent. A client whose
// work is refused, or that is absent, keeps its statistics.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/state/client_state.hpp"
#include "fl_core/state/shared_state.hpp"

namespace fl {

// Slots of S entries: the own statistics of clients with at least one counted round; the statistics of the initial model, for all other
// clients; and the mean over all clients with weights w_i, for measures.
inline constexpr const char* kOwnStatistics = "own_statistics";
inline constexpr const char* kInitialStatistics = "initial_statistics";
inline constexpr const char* kMeanStatistics = "mean_statistics";

[[nodiscard]] inline std::vector<SlotSpec> own_statistics_slots(std::size_t S) {
  return {{.name = kOwnStatistics, .owner = SlotOwner::client, .length = S},
          {.name = kInitialStatistics, .owner = SlotOwner::shared, .sync = SlotSync::initial, .length = S},
          {.name = kMeanStatistics, .owner = SlotOwner::server, .length = S}};
}

// Writes the client's statistics to out [S]. `stored` [S] is its row of kOwnStatistics.
template <class T>
void read_own_statistics(const ClientState<T>& state, const SharedState<T>& shared, std::uint32_t client, const T* stored, T* out) {
  const std::span<const T> initial = shared.slot(kInitialStatistics);
  std::copy_n(state.acknowledged(client) == 0 ? initial.data() : stored, initial.size(), out);
}

}  // namespace fl
