// The method of a run: the parts that the server and every client make from the scenario alone, equal in each process, and the slots that
// they declare there.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "clients/local_update.hpp"
#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/round/absence_rule.hpp"
#include "fl_core/round/round_views.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

template <class T>
struct RunMethod {
  std::unique_ptr<LocalUpdate<T>> local;
  std::unique_ptr<Feedback<T>> feedback;
  FeedbackPlan plan;  // of the feedback
  Exchange<T> exchange;
  Unit unit = Unit::gradient;
};

// Operators run on `device` where they have a half for it. Throws ConfigError for a part that its options or the model's layers refuse.
template <class T>
[[nodiscard]] RunMethod<T> make_method(const Scenario& scenario, const LayerTable& layers, Device device);

// Returns the channel `name` of a scenario; `index` sets its operator's random numbers apart from those of others.
template <class T>
[[nodiscard]] ExchangeChannel<T> make_channel(const Scenario& scenario, const LayerTable& layers, const std::string& name,
                                              const CompressorSpec& spec, std::size_t index, Device device);

// Returns the part of a role that a scenario names.
template <class Interface>
[[nodiscard]] std::unique_ptr<Interface> make_named(const std::string& role, const Part& part, Precision precision) {
  return make_part<Interface>(role, part.kind, part.options, Device::cpu, precision);
}

// Returns the constants of a run, which no side is sent.
template <class T>
[[nodiscard]] RunSettings run_settings(const Scenario& scenario, const RunMethod<T>& method, const FederatedProblem<T>& problem);

// Returns what becomes of the error memory of absent clients.
template <class T>
[[nodiscard]] AbsenceRule absence_rule(const Scenario& scenario, const RunMethod<T>& method, const RunSettings& run);

// Where a process holds slots: null for an owner that it does not host.
template <class T>
struct SlotHosts {
  ClientState<T>* clients = nullptr;
  SharedState<T>* shared = nullptr;
  ServerState<T>* server = nullptr;
};

// Declares the method's slots, those of its operators included, at the owners that this process hosts. Shared slots of operators begin as
// their random key says, in every process alike.
template <class T>
void declare_slots(const RunMethod<T>& method, const RunSettings& run, const SlotHosts<T>& hosts);

}  // namespace fl
