// What measures read of clients although nobody would send it. Clients that are simulated in the server's process can be asked; no result
// of a round depends on the answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fl {

template <class T>
class ClientProbe {
 public:
  virtual ~ClientProbe() = default;

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
