// The sums of clients' rows that measures need, asked of the peers that host the clients (docs/protocol.md, "Measures").
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/server/peers.hpp"
#include "net/server/traffic.hpp"
#include "net/wire/measured_kind.hpp"
#include "scenarios/experiment/run_clients.hpp"

namespace fl::net {

template <class T>
class MeasuredSums final : public ClientSums<T> {
 public:
  // The peers and what the request names outlive it. While it waits it asks goes_on(), and throws Interrupted when that returns false.
  // `begin` offers the run to peers if nobody has, and returns the round that was played last.
  MeasuredSums(Peers& peers, const ClientRequest<T>& request, const Presence& presence, std::function<bool()> goes_on,
               std::function<std::uint32_t()> begin, Traffic& traffic)
      : peers_(peers),
        presence_(presence),
        problem_(request.problem),
        run_(request.run),
        shared_(request.shared),
        pool_(request.pool),
        goes_on_(std::move(goes_on)),
        begin_(std::move(begin)),
        traffic_(traffic),
        gradient_length_(request.run.num_clients, std::numeric_limits<double>::quiet_NaN()) {}

  [[nodiscard]] std::vector<double> losses(std::span<const T> x) override;
  [[nodiscard]] std::vector<double> correct(std::span<const T> x) override;
  void read_gradients(std::span<const T> x, std::uint32_t first, BatchView<T> out) override;
  void read_distances(std::span<const T> x, std::span<const double> mean, std::uint32_t first, std::span<double> out) override;
  [[nodiscard]] bool is_complete() const override { return is_complete_; }

 private:
  struct Order {
    MeasuredKind kind;
    std::uint32_t first = 0, count = 0;
    std::span<const T> model;
    std::span<const double> mean{};
  };
  // Returns the answer of each client of the order; none for a client that cannot be asked, or whose answer is refused.
  [[nodiscard]] std::vector<std::optional<Frame>> ask(const Order& order);
  // Sends the order to the hosts of its clients and returns the clients that have one.
  [[nodiscard]] std::vector<std::uint32_t> send(const Order& order);
  // Returns the hosts of the order's clients, kNobody for absent ones. Waits for all of them if no client may be absent.
  [[nodiscard]] std::vector<HostId> find_hosts(const Order& order);
  [[nodiscard]] OutgoingFrame frame_of(const Order& order) const;
  [[nodiscard]] std::string fault_of(const Order& order, const Frame& frame, std::uint32_t client) const;
  void leave_out_odd_ones(const Order& order, std::vector<std::optional<Frame>>& answers);
  [[nodiscard]] bool test_rows_tell_of_divergence(std::span<const T> x);

  Peers& peers_;
  Presence presence_;
  const FederatedProblem<T>& problem_;
  const RunSettings& run_;
  const SharedState<T>& shared_;
  ThreadPool& pool_;
  std::function<bool()> goes_on_;
  std::function<std::uint32_t()> begin_;
  Traffic& traffic_;
  std::vector<double> gradient_length_;       // [N] |g_i| at the model of the last order of gradients; NaN = not known
  std::uint32_t last_order_ = 0, round_ = 1;  // `round_`: that was played last, 1 before the first one
  bool is_complete_ = true;
};

extern template class MeasuredSums<float>;
extern template class MeasuredSums<double>;

// Reads the move of the parameters that a client keeps. Returns why the frame holds none, and leaves zeros then; "" = it does.
[[nodiscard]] std::string read_kept_move(const Frame& frame, std::span<double> move);

}  // namespace fl::net
