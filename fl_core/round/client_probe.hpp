// Client data that measures read although it is never sent. Only clients that are simulated in the server's process provide it; no result
// of a round depends on it.
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

  // Sets whether rounds from now on keep each client's first vector before feedback and compression, [M,P], not divided by its work.
  // Switching it off frees the memory.
  virtual void keep_updates(bool keep) = 0;
  [[nodiscard]] virtual BatchView<const T> updates(std::size_t cohort, std::size_t P) const = 0;
  // Return the norms of the round's messages, [M], and the errors of the measured channel's operator; valid if RoundOrder::measure was
  // set.
  [[nodiscard]] virtual std::span<const ClientMeasures> measures() const = 0;
  [[nodiscard]] virtual std::span<const OperatorError> operator_errors() const = 0;
  // Returns sum_i w_i e_i [P] over all clients, with the error memory with which each would begin `round`. `replacement` is the server's
  // mean memory if it replaces the memory of absent clients, otherwise empty.
  [[nodiscard]] virtual std::vector<double> error_memory_sum(std::uint32_t round, std::span<const double> replacement) = 0;
  // Adds to `mean` the change in this round of sum_i w_i s_i, where s_i are the parameters that client i keeps ([M], 1 = delivered). Call
  // before the round closes.
  virtual void add_kept_moves(std::span<const std::uint8_t> delivered, std::span<double> mean) = 0;
  // Writes to `move` the change in this round of the parameters that the client at this position of the cohort keeps. Call before the round
  // closes.
  virtual void read_kept_move(std::uint32_t position, std::span<double> move) = 0;
  // Replaces kept parameters in x [P] by the client's own.
  virtual void put_kept(std::uint32_t client, T* x) = 0;
  // Returns the client's own model: x [P] with the parameters that it keeps.
  [[nodiscard]] std::vector<T> own_model(std::uint32_t client, std::span<const T> x) {
    std::vector<T> own(x.begin(), x.end());
    put_kept(client, own.data());
    return own;
  }
};

}  // namespace fl
