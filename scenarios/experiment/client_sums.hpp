// Sums over the rows of each client, from which measures of all rows are made (docs/protocol.md, "Measures").
//
// Every measure of training rows is first summed within each client and then over the clients, in ascending order. So the sums of a client
// can be computed wherever its rows are, and a run has the same bits whichever process computes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/memory/batch_view.hpp"

namespace fl {

// Returns |g - mean|^2, entry after entry.
template <class T>
[[nodiscard]] double distance_sq(const T* g, const double* mean, std::size_t P) {
  double sum = 0;
  for (std::size_t j = 0; j < P; ++j) sum += (static_cast<double>(g[j]) - mean[j]) * (static_cast<double>(g[j]) - mean[j]);
  return sum;
}

// The sums of clients whose rows are in other processes. A value is NaN for a client that cannot be asked.
template <class T>
class ClientSums {
 public:
  virtual ~ClientSums() = default;
  // Returns the sum of losses over each client's training rows at x [N], without regulariser.
  [[nodiscard]] virtual std::vector<double> losses(std::span<const T> x) = 0;
  // Returns the number of labels of each client's own rows (FederatedProblem::own_labels) that its model, x with the parameters that it
  // keeps, predicts correctly [N].
  [[nodiscard]] virtual std::vector<double> correct(std::span<const T> x) = 0;
  // Writes the gradients at x of clients first, first + 1, .. to the rows of `out`.
  virtual void read_gradients(std::span<const T> x, std::uint32_t first, BatchView<T> out) = 0;
  // Writes distance_sq() of the same clients' gradients at x from `mean` [P] to `out`.
  virtual void read_distances(std::span<const T> x, std::span<const double> mean, std::uint32_t first, std::span<double> out) = 0;
  // Returns whether every client answered the last request.
  [[nodiscard]] virtual bool is_complete() const = 0;
};

}  // namespace fl
