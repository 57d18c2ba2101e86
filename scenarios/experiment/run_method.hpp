// The method of a run: the parts that the server and every client make from the scenario alone, equal in each process, and the slots that
// these parts declare there.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "clients/learning/local_update.hpp"
#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/round/absence_rule.hpp"
#include "fl_core/round/round_views.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

// The postprocessor of a run: one for clients, on a GPU if it has a CUDA half, and one for the server, on the CPU.
template <class T>
struct RunPostprocessor {
  PostprocessorPlan plan;
  std::unique_ptr<Postprocessor<T>> of_clients, of_server;
  Device device = Device::cpu;  // of of_clients

  [[nodiscard]] ClientPostprocessor<T> for_clients() const { return {plan.changes_vectors ? of_clients.get() : nullptr, device}; }
  [[nodiscard]] const Postprocessor<T>* for_server() const { return plan.changes_estimate ? of_server.get() : nullptr; }
};

template <class T>
struct RunMethod {
  std::unique_ptr<LocalUpdate<T>> local;
  std::unique_ptr<Feedback<T>> feedback;
  FeedbackPlan plan;  // of the feedback
  Exchange<T> exchange;
  RunPostprocessor<T> postprocessor;
  Unit unit = Unit::gradient;
};

// Makes the parts of a method for this many clients; operators run on `device` if they support it. Throws ConfigError if a part rejects its
// options, the model's layers or the number of clients.
template <class T>
[[nodiscard]] RunMethod<T> make_method(const Scenario& scenario, const LayerTable& layers, std::size_t num_clients, Device device);

// Returns a model's layers with the kinds that a scenario gives their parameters.
[[nodiscard]] LayerTable layers_of_run(const Scenario& scenario, LayerTable layers);

// Returns the channel `name` of a scenario, which this many senders use; `index` separates its operator's random numbers from those of
// other channels.
template <class T>
[[nodiscard]] ExchangeChannel<T> make_channel(const Scenario& scenario, const LayerTable& layers, const std::string& name,
                                              const CompressorSpec& spec, std::size_t index, std::size_t num_senders, Device device);

// Returns the scenario's rule of local steps, none for plain steps, with its CUDA half if `device` is a GPU and the rule has one. Throws
// ConfigError if it does not suit the layers.
template <class T>
[[nodiscard]] OptimizerHalves<T> make_optimizer(const Scenario& scenario, const LayerTable& layers, Device device);

// Returns the part that a scenario names for a role.
template <class Interface>
[[nodiscard]] std::unique_ptr<Interface> make_named(const std::string& role, const Part& part, Precision precision) {
  return make_part<Interface>(role, part.kind, part.options, Device::cpu, precision);
}

// Returns the constants of a run. They are known to both sides and never sent.
template <class T>
[[nodiscard]] RunSettings run_settings(const Scenario& scenario, const RunMethod<T>& method, const FederatedProblem<T>& problem);

// Returns the rule for the error memory of absent clients.
template <class T>
[[nodiscard]] AbsenceRule absence_rule(const Scenario& scenario, const RunMethod<T>& method, const RunSettings& run);

// The slot owners that a process hosts; null for an owner that it does not host.
template <class T>
struct SlotHosts {
  ClientState<T>* clients = nullptr;
  SharedState<T>* shared = nullptr;
  ServerState<T>* server = nullptr;
};

// Declares the method's slots, including those of its operators, at the owners that this process hosts. Shared slots of operators are
// initialised from their random key, equally in every process.
template <class T>
void declare_slots(const RunMethod<T>& method, const RunSettings& run, const SlotHosts<T>& hosts);

}  // namespace fl
