// A peer's answers to measures: sums over the rows of each client that it hosts (docs/protocol.md, "Measures").
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "net/wire/client_ranges.hpp"
#include "net/wire/frame.hpp"
#include "scenarios/experiment/client_side.hpp"

namespace fl::net {

template <class T>
class HostedSums {
 public:
  // All arguments outlive it. `shared` receives the kept parameters of clients without a counted round, where an order brings them.
  HostedSums(const FederatedProblem<T>& problem, const RunSettings& run, ClientSide<T>& side, SharedState<T>& shared, ThreadPool& pool)
      : problem_(problem), run_(run), side_(side), shared_(shared), pool_(pool) {}

  // Returns a frame for each client of `hosted` that the order names. Throws ProtocolError for an order that does not fit the run.
  [[nodiscard]] std::vector<OutgoingFrame> answer(const Frame& frame, const std::vector<ClientRange>& hosted);

 private:
  struct Order {
    const wire::MeasureOrder& header;
    std::vector<std::uint32_t> clients;  // asked and hosted
    std::vector<T> model;                // [P]
    std::vector<double> mean;            // [P] or empty
  };
  [[nodiscard]] Order read(const Frame& frame, const std::vector<ClientRange>& hosted);
  [[nodiscard]] std::vector<OutgoingFrame> losses(const Order& order);
  [[nodiscard]] std::vector<OutgoingFrame> correct(const Order& order);
  [[nodiscard]] std::vector<OutgoingFrame> gradients(const Order& order);
  // Computes the gradients of some of the order's clients to gradients_ [count,P].
  void compute(const Order& order, std::size_t first, std::size_t count);

  const FederatedProblem<T>& problem_;
  const RunSettings& run_;
  ClientSide<T>& side_;
  SharedState<T>& shared_;
  ThreadPool& pool_;
  std::vector<T> gradients_;
};

extern template class HostedSums<float>;
extern template class HostedSums<double>;

// Returns the frame with the move of the parameters [num_kept] that a client keeps in this round.
template <class T>
[[nodiscard]] OutgoingFrame kept_move(std::uint32_t round, std::uint32_t client, std::uint32_t position, std::size_t num_kept,
                                      ClientProbe<T>& probe);

}  // namespace fl::net
