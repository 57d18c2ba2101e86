#include "scenarios/experiment/server_side.hpp"

#include <algorithm>
#include <utility>

#include "fl_core/config/key_error.hpp"
#include "fl_core/round/kept_parameters.hpp"
#include "server/async_rounds.hpp"

namespace fl {

std::unique_ptr<DeliveryPolicy> make_delivery(const Part& part) {
  return about_key("delivery.kind", [&] { return make_named<DeliveryPolicy>("delivery", part, Precision::float64); });
}

template <class T>
ServerParts<T> make_server_parts(const Scenario& scenario, const FederatedProblem<T>& problem) {
  ServerParts<T> parts;
  about_key("server.kind",
            [&] { parts.optimizer = make_named<ServerOptimizer<T>>("server_optimizer", scenario.server.part, kPrecisionOf<T>); });
  about_key("aggregation.kind",
            [&] { parts.aggregation = make_named<AggregationRule>("aggregation", scenario.aggregation, Precision::float64); });
  parts.delivery = make_delivery(scenario.delivery);
  about_key("asynchronous.kind",
            [&] { parts.asynchronous = make_named<AsyncRule>("asynchronous", scenario.asynchronous, Precision::float64); });
  about_key("participation.kind", [&] {
    parts.participation = make_named<Participation>("participation", scenario.participation.part, Precision::float64);
    parts.participation->open(problem.shards().size(),
                              [&problem](const std::string& path) { return problem.find_input("participation.path", path); });
  });
  return parts;
}

template <class T>
ServerSide<T> make_server_side(const Scenario& scenario, const LayerTable& layers, ServerParts<T> parts, const RunMethod<T>& method,
                               const RunSettings& run, SharedState<T>& shared, ServerClients<T> clients, const ServerPlace& place,
                               std::span<T> model, ThreadPool& pool) {
  ServerSide<T> side;
  side.parts = std::move(parts);
  side.state = std::make_unique<ServerState<T>>(run.num_clients, run.P);
  declare_slots<T>(method, run, {.server = side.state.get()});
  const AbsenceRule absence = absence_rule(scenario, method, run);
  if (absence.replaces()) side.state->declare({.name = kAbsentMean, .owner = SlotOwner::server});
  side.downlink = std::make_unique<Downlink<T>>(make_channel<T>(scenario, layers, "down", scenario.down, 0xD0, 1, Device::cpu),
                                                scenario.down.sends(), run.num_clients, run.P, run.kinds);
  if (place.keeps_messages) side.downlink->keep_messages();
  const RoundParts<T> round{*side.parts.participation,
                            *method.feedback,
                            method.plan,
                            method.exchange,
                            *side.parts.aggregation,
                            method.postprocessor.for_server(),
                            clients.runner,
                            clients.probe,
                            *side.parts.optimizer,
                            *side.downlink,
                            run,
                            shared,
                            *side.state,
                            pool};
  const RoundSettings settings{.step_size = place.step_size,
                               .schedule = method.local->step_settings().schedule,
                               .rounds = static_cast<std::uint32_t>(scenario.rounds),
                               .absence = absence,
                               .times = place.times,
                               .sums = place.sums};
  if (side.parts.asynchronous->is_asynchronous())
    side.round = std::make_unique<AsyncRounds<T>>(round, settings, *side.parts.asynchronous, *place.clock, model);
  else
    side.round = std::make_unique<Round<T>>(round, settings, model);
  return side;
}

template <class T>
void start_kept(const RunSettings& run, std::span<const T> model, SharedState<T>& shared, ServerState<T>& state) {
  if (run.kinds.kept.empty()) return;
  const std::span<T> initial = shared.slot(kInitialKept);
  gather_ranges(run.kinds.kept, model.data(), initial.data());
  std::ranges::copy(initial, state.slot(kMeanKept).begin());
}

#define FL_INSTANTIATE(T)                                                                                                                 \
  template ServerParts<T> make_server_parts<T>(const Scenario&, const FederatedProblem<T>&);                                              \
  template ServerSide<T> make_server_side<T>(const Scenario&, const LayerTable&, ServerParts<T>, const RunMethod<T>&, const RunSettings&, \
                                             SharedState<T>&, ServerClients<T>, const ServerPlace&, std::span<T>, ThreadPool&);           \
  template void start_kept<T>(const RunSettings&, std::span<const T>, SharedState<T>&, ServerState<T>&);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
