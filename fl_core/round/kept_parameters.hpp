// Parameters that stay with the clients (ParameterKind::kept), such as the running statistics of batch normalisation in FedBN (X. Li,
// M. Jiang, X. Zhang, M. Kamp, Q. Dou, "FedBN: federated learning on non-IID features via local batch normalization", ICLR 2021).
//
// A client computes with its own values and sends none. They change with its local work, even if its message is silent. A client whose work
// is refused, or that is absent, has the same values afterwards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/state/client_state.hpp"
#include "fl_core/state/shared_state.hpp"

namespace fl {

// Slots of `length` entries: the values of clients with at least one counted round; those of the initial model, for all other clients; and
// the mean over all clients with weights w_i, for measures. Checkpoints have the names.
inline constexpr const char* kKeptValues = "own_statistics";
inline constexpr const char* kInitialKept = "initial_statistics";
inline constexpr const char* kMeanKept = "mean_statistics";

[[nodiscard]] inline std::vector<SlotSpec> kept_slots(std::size_t length) {
  return {{.name = kKeptValues, .owner = SlotOwner::client, .length = length},
          {.name = kInitialKept, .owner = SlotOwner::shared, .sync = SlotSync::initial, .length = length},
          {.name = kMeanKept, .owner = SlotOwner::server, .length = length}};
}

// Writes the client's values to out. `stored` is its row of kKeptValues.
template <class T>
void read_kept(const ClientState<T>& state, const SharedState<T>& shared, std::uint32_t client, const T* stored, T* out) {
  const std::span<const T> initial = shared.slot(kInitialKept);
  std::copy_n(state.acknowledged(client) == 0 ? initial.data() : stored, initial.size(), out);
}

}  // namespace fl
