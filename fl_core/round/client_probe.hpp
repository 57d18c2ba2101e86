// What measures read of clients although nobody would send it. Clients that are simulated in the server's process can be asked; no result
// of a round depends on the answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/round/client_measures.hpp"

namespace fl {

template <class T>
class ClientProbe {
 public:
  virtual ~ClientProbe() = default;

  // Whether the rounds from now on keep what each client wants to send, [M,P] of its first vector before feedback and compression,
  // undivided by its work; the memory goes when they no longer do.
  virtual void keep_updates(bool keep) = 0;
  [[nodiscard]] virtual BatchView<const T> updates(std::size_t cohort, std::size_t P) const = 0;
  // Norms of the round's messages, [M], and the errors of the measured channel's operator; valid when RoundOrder::measure was set.
  [[nodiscard]] virtual std::span<const ClientMeasures> measures() const = 0;
  [[nodiscard]] virtual std::span<const OperatorError> operator_errors() const = 0;
  // Returns sum_i w_i e_i [P] over all clients, with the error memory that each would begin `round` with. `replacement` is the server's
  // mean memory where that takes the place of an absent client's, or empty.
  [[nodiscard]] virtual std::vector<double> error_memory_sum(std::uint32_t round, std::span<const double> replacement) = 0;
  // Adds to mean [S] by how much this round moves sum_i w_i s_i of the statistics that stay with the clients ([M], 1 = delivered). Call
  // before the round closes.
  virtual void add_statistics_moves(std::span<const std::uint8_t> delivered, std::span<double> mean) = 0;
  // The statistics in x [P] become the client's own.
  virtual void put_own_statistics(std::uint32_t client, T* x) = 0;
};

}  // namespace fl
