// Tests that the order in which messages arrive does not matter: in a hundred different orders the run is the simulated one.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/net/network_run.hpp"
#include "tests/net/watched_transport.hpp"

namespace fl {
namespace {

constexpr unsigned kClients = 7, kRounds = 3;
using Order = std::vector<std::uint32_t>;

std::string text_of_arrivals() {
  return "name = 'arrival'\nrounds = " + std::to_string(kRounds) +
         "\nprecision = 'float32'\n[data]\nkind = 'synthetic'\nclients = 7\nfeatures = 6\nclasses = 3\n[partition]\nkind = "
         "'natural'\nclients = 7\n"
         "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[evaluate]\noptimum = false\n[local]\nkind = 'gradient'\nbatch = "
         "3\nlearning_rate = 0.05\n"
         "[compressor.up]\nkind = 'top_k'\nk = 5\n[feedback.up]\nkind = 'ef14'\n[server]\nkind = 'sgd'\nmomentum = 0.9\n";
}

// Lets the update of a client leave its peer when those before it in the planned order of its round are at the server.
class Turns {
 public:
  explicit Turns(std::vector<Order> planned) : planned_(std::move(planned)), arrived_(planned_.size()) {}

  void note(const net::wire::Header& header) {
    if (!header.has_update()) return;
    const std::lock_guard lock(mutex_);
    arrived_.at(header.update().round() - 1).push_back(header.update().client());
  }
  net::asio::awaitable<void> wait(const net::wire::Update& update) {
    const auto executor = co_await net::asio::this_coro::executor;
    net::asio::steady_timer timer(executor);
    while (!is_next(update)) {
      timer.expires_after(std::chrono::microseconds(50));
      co_await timer.async_wait(net::asio::use_awaitable);
    }
  }
  [[nodiscard]] std::vector<Order> arrived() const {
    const std::lock_guard lock(mutex_);
    return arrived_;
  }

 private:
  [[nodiscard]] bool is_next(const net::wire::Update& update) const {
    const std::lock_guard lock(mutex_);
    const std::size_t place = arrived_.at(update.round() - 1).size();
    return planned_.at(update.round() - 1).at(place) == update.client();
  }
  mutable std::mutex mutex_;
  const std::vector<Order> planned_;  // of each round
  std::vector<Order> arrived_;
};

std::vector<Order> draw_orders(std::mt19937& random) {
  std::vector<Order> orders(kRounds, Order(kClients));
  for (Order& order : orders) {
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), random);
  }
  return orders;
}

TEST(Arrival, InAHundredOrdersTheRunIsTheSimulatedOne) {
  const std::string text = text_of_arrivals();
  const RunResult simulated = test::run_simulated(text);
  std::mt19937 random(20);
  std::set<std::vector<Order>> runs;
  std::set<Order> of_a_round;
  for (int i = 0; i < 100; ++i) {
    const std::vector<Order> planned = draw_orders(random);
    const auto turns = std::make_shared<Turns>(planned);
    const auto log = std::make_shared<test::WireLog>();
    log->on_frame_up = [turns](const net::wire::Header& header) { turns->note(header); };
    const test::NetworkTransports transports{.server = std::make_shared<test::WatchedTransport>(net::plain_transport(), log),
                                             .peer = [turns](std::uint32_t) {
                                               return std::make_shared<test::DelayedTransport>(
                                                   [turns](const net::wire::Header& header) { return turns->wait(header.update()); });
                                             }};
    const test::NetworkRun run = test::run_over_network(text, {"0", "1", "2", "3", "4", "5", "6"}, transports);
    test::expect_same_run(text, simulated, run);
    ASSERT_EQ(turns->arrived(), planned) << "run " << i;
    runs.insert(turns->arrived());
    for (const Order& order : turns->arrived()) of_a_round.insert(order);
  }
  EXPECT_EQ(runs.size(), 100U);
  EXPECT_GE(of_a_round.size(), 100U);
  std::cout << runs.size() << " runs whose messages arrived in different orders, " << of_a_round.size() << " orders of a round"
            << std::endl;
}

}  // namespace
}  // namespace fl
