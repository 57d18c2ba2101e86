// Simulated time: events of a server that does not wait, beside a queue that does nothing else; and rounds with a clock beside the same
// rounds without one.
//
//   events   clients that end and begin again with 1,000 of 100,000 on their way, per second of one core
//   queue    the same number of times taken from a std::priority_queue and put back
//   rounds   ten clients of McMahan's 2NN in a round, with a link and a device each, and without
// Usage: clock_bench [repeats]     needs FEDBITS_DATA (fashion-mnist)
#include <queue>

#include "bench/timing.hpp"
#include "fl_core/random/random.hpp"
#include "scenarios/experiment/server_side.hpp"
#include "server/flights.hpp"
#include "server/round_clock.hpp"
#include "tests/support/run_scenario.hpp"

namespace {

using fl::bench::median;
using fl::bench::seconds_of;

constexpr std::uint32_t kClients = 100'000, kOnTheirWay = 1000, kEvents = 200'000;

// Devices and links of clients that differ.
struct Speeds final : fl::Devices, fl::Network {
  std::vector<double> factor;
  Speeds() {
    fl::RandomSequence random(1, fl::Purpose::synthetic_data);
    for (std::uint32_t i = 0; i < kClients; ++i) factor.push_back(0.1 + random.uniform());
  }
  void open(const fl::ClientFacts&) override {}
  [[nodiscard]] std::vector<std::string> tiers() const override { return {"all"}; }
  [[nodiscard]] std::size_t tier(std::uint32_t) const override { return 0; }
  [[nodiscard]] fl::DeviceRates rates(std::uint32_t client) const override { return {1e9 * factor[client], 1e10 * factor[client]}; }
  [[nodiscard]] fl::LinkRates link(std::uint32_t client, double) const override {
    return {.down = 1e7 * factor[client], .up = 1e6 * factor[client], .latency_s = 0.05, .jitter_s = 0.02};
  }
};
struct Always final : fl::Availability {
  [[nodiscard]] bool is_here(std::uint32_t, double) const override { return true; }
  [[nodiscard]] double next_change(std::uint32_t, double) const override { return std::numeric_limits<double>::infinity(); }
};
struct StatedWork final : fl::ClientWork {
  [[nodiscard]] fl::Work local(std::uint32_t, std::uint32_t) const override { return {1e9, 1e8}; }
  [[nodiscard]] fl::Work message(int, double bits) const override { return {bits, bits}; }
  [[nodiscard]] fl::Work reading(double bits) const override { return {bits, bits}; }
  [[nodiscard]] fl::Work aggregation(int, std::size_t, double) const override { return {}; }
  [[nodiscard]] fl::Work step() const override { return {}; }
};

double events_per_second() {
  const Speeds speeds;
  const Always always;
  const StatedWork work;
  const auto all = fl::make_delivery(fl::default_part("delivery", "all"));
  fl::RoundClock clock({speeds, speeds, always, work, *all, {}, 1});
  fl::Flights<float> flights;
  const auto begin = [&](std::uint32_t client, std::uint32_t number) {
    fl::Flight<float> flight;
    flight.order.cohort = {client};
    flight.ends_s = clock.alone(client, number, 100'000, 10'000 + number % 977).ends_s;
    flights.add(std::move(flight));
  };
  for (std::uint32_t i = 0; i < kOnTheirWay; ++i) begin(i * (kClients / kOnTheirWay), i);
  std::uint32_t next = 0;
  const auto seconds = seconds_of([&] {
    for (std::uint32_t i = 0; i < kEvents; ++i) {
      clock.advance_to(flights.next_s());
      const fl::Flight<float> flight = flights.take();
      do next = (next + 7919) % kClients;
      while (flights.contains(next));
      begin(next, i);
    }
  });
  return kEvents / seconds.processor;
}

double queue_per_second() {
  std::priority_queue<std::pair<double, std::uint32_t>, std::vector<std::pair<double, std::uint32_t>>, std::greater<>> queue;
  fl::RandomSequence random(2, fl::Purpose::synthetic_data);
  for (std::uint32_t i = 0; i < kOnTheirWay; ++i) queue.emplace(random.uniform(), i);
  const auto seconds = seconds_of([&] {
    for (std::uint32_t i = 0; i < kEvents; ++i) {
      const auto [time, client] = queue.top();
      queue.pop();
      queue.emplace(time + random.uniform(), client);
    }
  });
  return kEvents / seconds.processor;
}

std::string scenario(const std::string& timing) {
  return "name='bench'\nrounds=1000000\n[data]\nname='fashion-mnist'\n[partition]\nkind='shuffled'\nclients=100\n[model]\n"
         "kind='2nn_mcmahan'\n[local]\nkind='sgd'\nlearning_rate=0.01\nepochs=1\nbatch=10\n[participation]\nkind='uniform'\nclients=10\n"
         "[compressor.up]\nkind='top_k'\nratio=0.01\n[feedback.up]\nkind='ef14'\n"
         "[evaluate]\nevery=1000000\ntrain_loss=false\ngradient='never'\noptimum=false\n" +
         timing;
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 7;
  std::vector<double> events, queue;
  for (int i = 0; i < repeats; ++i) {
    events.push_back(events_per_second());
    queue.push_back(queue_per_second());
  }
  std::printf("events   %.2f million a second of one core; a queue alone %.2f million (%.2f of it)\n", median(events) / 1e6,
              median(queue) / 1e6, median(events) / median(queue));

  fl::test::OneRun<float> plain(scenario("")),
      timed(scenario("[network]\nkind='constant'\ndown=1e7\nup=1e6\nlatency=0.05\njitter=0.02\n[devices]\nkind='constant'\nflops=1e10\n"
                     "bandwidth=1e10\n"));
  std::vector<double> without, with;
  for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(repeats); ++round) {
    without.push_back(seconds_of([&] { plain.play(round, round); }).processor);
    with.push_back(seconds_of([&] { timed.play(round, round); }).processor);
  }
  std::printf("rounds   %.2f ms without a clock, %.2f ms with one (%.4f of it)\n", 1e3 * median(without), 1e3 * median(with),
              median(with) / median(without));
  return 0;
}
