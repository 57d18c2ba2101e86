#include "scenarios/experiment/run_clock.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/key_error.hpp"
#include "scenarios/experiment/stated_work.hpp"
#include "scenarios/results/number_text.hpp"

namespace fl {
namespace {

// Computing takes no time where no devices are named.
class NoWork final : public ClientWork {
 public:
  [[nodiscard]] Work local(std::uint32_t, std::uint32_t) const override { return {}; }
  [[nodiscard]] Work message(int, double) const override { return {}; }
  [[nodiscard]] Work reading(double) const override { return {}; }
  [[nodiscard]] Work aggregation(int, std::size_t, double) const override { return {}; }
  [[nodiscard]] Work step() const override { return {}; }
};

// Returns the mean class number of each client's rows; empty if the data have no classes, or if the rows are elsewhere.
template <class T>
std::vector<double> mean_labels(const FederatedProblem<T>& problem) {
  const Dataset<T>& train = problem.train();
  if (!problem.has_rows() || train.label.empty()) return {};
  std::vector<double> means;
  for (const Shard& shard : problem.shards()) {
    double sum = 0;
    for (const std::uint32_t row : shard) sum += train.label[row];
    means.push_back(shard.empty() ? 0 : sum / static_cast<double>(shard.size()));
  }
  return means;
}

}  // namespace

template <class T>
RunTiming make_timing(const Scenario& scenario, const FederatedProblem<T>& problem) {
  std::vector<std::uint32_t> rows;
  for (std::size_t client = 0; client < problem.shards().size(); ++client)
    rows.push_back(static_cast<std::uint32_t>(problem.num_rows_of(client)));
  const std::vector<double> labels = mean_labels(problem);
  RunTiming timing;
  const auto facts_for = [&](const std::string& key) {
    return ClientFacts{.num_clients = rows.size(),
                       .seed = scenario.seeds.data,
                       .rows = rows,
                       .labels = labels,
                       .find_file = [&problem, key](const std::string& path) { return problem.find_input(key, path); }};
  };
  about_key("devices.kind", [&] {
    timing.devices = make_named<Devices>("devices", scenario.devices, Precision::float64);
    timing.devices->open(facts_for("devices.path"));
  });
  about_key("network.kind", [&] {
    timing.network = make_named<Network>("network", scenario.network, Precision::float64);
    timing.network->open(facts_for("network.path"));
  });
  about_key("availability.kind", [&] {
    timing.availability = make_named<Availability>("availability", scenario.availability, Precision::float64);
    timing.availability->open(facts_for("availability.path"));
  });
  return timing;
}

// Throws ConfigError for devices whose memory does not hold what a client keeps: its model, a gradient, its vectors and its slots.
template <class T>
void require_memory(const Devices& devices, const RunMethod<T>& method, std::size_t num_clients, std::size_t P) {
  const auto is_of_clients = [](const SlotSpec& slot) { return slot.owner == SlotOwner::client; };
  const std::vector<SlotSpec> slots = method.local->slots();
  const auto vectors =
      2 + method.local->vectors().size() +
      static_cast<std::size_t>(std::ranges::count_if(method.plan.slots, is_of_clients) + std::ranges::count_if(slots, is_of_clients));
  const double needs = static_cast<double>(vectors * P * sizeof(T));
  std::size_t too_small = 0;
  double least = needs;
  for (std::uint32_t client = 0; client < num_clients; ++client) {
    const double memory = devices.rates(client).memory_bytes;
    too_small += memory < needs ? 1 : 0;
    least = std::min(least, memory);
  }
  if (too_small > 0)
    throw key_error("devices.memory", std::to_string(too_small) + " of " + std::to_string(num_clients) +
                                          " clients have too little, down to " + short_text(least) + " bytes: a client keeps " +
                                          std::to_string(vectors) + " vectors of the model, " + short_text(needs) +
                                          " bytes; give them more, or take a smaller model");
}

template <class T>
std::unique_ptr<RunClock<T>> make_clock(const Scenario& scenario, const FederatedProblem<T>& problem, const RunMethod<T>& method,
                                        const DeliveryPolicy& delivery, CohortRunner<T>& clients, std::size_t awaited) {
  if (!scenario.has_clock()) return nullptr;
  auto run = std::make_unique<RunClock<T>>();
  run->timing = make_timing(scenario, problem);
  require_memory(*run->timing.devices, method, problem.shards().size(), problem.P());
  if (scenario.devices.kind == "none")
    run->work = std::make_unique<NoWork>();
  else
    run->work = make_client_work(scenario, problem, method);
  const ServerTiming& server = scenario.server_timing;
  ServerRates rates;
  rates.device = {.operations_per_s = server.flops.value_or(rates.device.operations_per_s),
                  .bytes_per_s = server.bandwidth.value_or(rates.device.bytes_per_s)};
  rates.down = server.down.value_or(rates.down);
  rates.up = server.up.value_or(rates.up);
  const ClockParts parts{.devices = *run->timing.devices,
                         .network = *run->timing.network,
                         .availability = *run->timing.availability,
                         .work = *run->work,
                         .delivery = delivery,
                         .server = rates,
                         .seed = scenario.seeds.sampling};
  run->clock = std::make_unique<RoundClock>(parts);
  run->by_ratio = std::make_unique<RoundClock>(parts);
  run->cohort = std::make_unique<TimedCohort<T>>(clients, *run->clock, *run->by_ratio, awaited);
  return run;
}

#define FL_INSTANTIATE(T)                                                                                               \
  template RunTiming make_timing<T>(const Scenario&, const FederatedProblem<T>&);                                       \
  template std::unique_ptr<RunClock<T>> make_clock<T>(const Scenario&, const FederatedProblem<T>&, const RunMethod<T>&, \
                                                      const DeliveryPolicy&, CohortRunner<T>&, std::size_t);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
