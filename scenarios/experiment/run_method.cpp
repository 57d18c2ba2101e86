#include "scenarios/experiment/run_method.hpp"

#include <algorithm>

#include "compressors/conversation.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/round/kept_parameters.hpp"

namespace fl {

namespace {

template <class T>
RunPostprocessor<T> make_postprocessor(const Part& part, Device device) {
  RunPostprocessor<T> made;
  if (Registry::instance().contains("postprocessor", part.kind, device, kPrecisionOf<T>)) made.device = device;
  made.of_server = make_named<Postprocessor<T>>("postprocessor", part, kPrecisionOf<T>);
  made.of_clients = make_part<Postprocessor<T>>("postprocessor", part.kind, part.options, made.device, kPrecisionOf<T>);
  made.plan = made.of_server->plan();
  return made;
}

}  // namespace

template <class T>
RunMethod<T> make_method(const Scenario& scenario, const LayerTable& layers, std::size_t num_clients, Device device) {
  RunMethod<T> method;
  about_key("local.kind", [&] { method.local = make_named<LocalUpdate<T>>("local_update", scenario.local, kPrecisionOf<T>); });
  about_key("local_optimizer.kind", [&] { method.local->step_by(make_optimizer<T>(scenario, layers, device)); });
  about_key("feedback.up.kind", [&] { method.feedback = make_named<Feedback<T>>("feedback", scenario.feedback_up, kPrecisionOf<T>); });
  method.plan = method.feedback->plan();
  const std::vector<std::string> vectors = method.local->vectors();
  for (const ChannelSpec& spec : channels_of(method.plan, vectors)) {
    const CompressorSpec& compressor = scenario.compressor_up(spec.name);
    const std::string section = scenario.up.contains(spec.name) ? "compressor.up." + spec.name : "compressor.up";
    ExchangeChannel<T> channel = about_key(section + ".kind", [&] {
      return make_channel<T>(scenario, layers, spec.name, compressor, method.exchange.channels.size(), num_clients, device);
    });
    channel.vector = static_cast<std::size_t>(std::find(vectors.begin(), vectors.end(), spec.vector) - vectors.begin());
    channel.every = spec.every;
    method.exchange.channels.push_back(std::move(channel));
  }
  about_key("postprocessor.kind", [&] { method.postprocessor = make_postprocessor<T>(scenario.postprocessor, device); });
  method.unit = scenario.compressor_up("").unit.value_or(method.local->units().front());
  return method;
}

template <class T>
OptimizerHalves<T> make_optimizer(const Scenario& scenario, const LayerTable& layers, Device device) {
  const Part& given = scenario.local_optimizer;
  const Part part = given.options.empty() ? default_part("local_optimizer", given.kind) : given;
  const auto make = [&part](Device on) {
    return make_part<LocalOptimizer<T>>("local_optimizer", part.kind, part.options, on, kPrecisionOf<T>);
  };
  OptimizerHalves<T> halves{make(Device::cpu), nullptr};
  if (part.kind == "sgd" && halves.cpu->plain_momentum() == 0.0) return {};
  halves.cpu->check(layers);
  if (device != Device::cpu && Registry::instance().contains("local_optimizer", part.kind, device, kPrecisionOf<T>))
    halves.cuda = make(device);
  return halves;
}

template <class T>
ExchangeChannel<T> make_channel(const Scenario& scenario, const LayerTable& layers, const std::string& name, const CompressorSpec& spec,
                                std::size_t index, std::size_t num_senders, Device device) {
  ExchangeChannel<T> channel;
  channel.name = name;
  if (Registry::instance().contains("compressor", spec.part.kind, device, kPrecisionOf<T>)) channel.device = device;
  channel.compressor = make_part<Compressor<T>>("compressor", spec.part.kind, spec.part.options, channel.device, kPrecisionOf<T>);
  if (channel.device != Device::cpu)
    channel.receiver = make_part<Compressor<T>>("compressor", spec.part.kind, spec.part.options, Device::cpu, kPrecisionOf<T>);
  const Part identity = default_part("compressor", "identity");
  channel.dense = make_part<Compressor<T>>("compressor", identity.kind, identity.options, device, kPrecisionOf<T>);
  Scope scope = make_scope(layers_of_run(scenario, layers), spec.scope, static_cast<std::size_t>(spec.bucket), spec.exclude);
  scope.clients = num_senders;
  channel.scope = channel.compressor->adapt(std::move(scope));
  channel.compressor->check(channel.scope);
  channel.random_key = hash64(hash64(scenario.seeds.compressor, static_cast<std::uint64_t>(Purpose::compressor)), index);
  for (int phase = 0; phase < channel.num_phases(); ++phase)
    channel.phase_scope.push_back(message_scope(*channel.compressor, channel.scope, phase));
  if (channel.compressor->cohort_state_size(channel.scope) > 0) channel.shared_slot = "compressor." + name;
  if (channel.compressor->client_state_size(channel.scope) > 0) channel.client_slot = "compressor." + name + ".client";
  return channel;
}

LayerTable layers_of_run(const Scenario& scenario, LayerTable layers) {
  for (Layer& layer : layers.layers)
    if (layer.running_rate > 0) layer.kind = scenario.server.kind_of_averages();
  about_key("model.keep", [&] { keep_tensors(layers, scenario.model.keep); });
  const auto is_shared = [](const Layer& layer) { return kind_of(layer) == ParameterKind::shared && layer.size() > 0; };
  if (!scenario.model.keep.empty() && std::ranges::none_of(layers.layers, is_shared))
    throw key_error("model.keep", "no tensor is left that clients send: all of them would stay with the clients; keep fewer");
  return layers;
}

template <class T>
RunSettings run_settings(const Scenario& scenario, const RunMethod<T>& method, const FederatedProblem<T>& problem) {
  const LocalWork* work = method.local->step_settings().work;
  return {.unit = method.unit,
          .average = scenario.server.average,
          .seeds = scenario.seeds,
          .num_clients = problem.shards().size(),
          .P = problem.P(),
          .weights = problem.weights(),
          .kinds = kinds_of(layers_of_run(scenario, problem.layers())),
          .offset_slot = method.plan.offset_slot,
          .offset_factor = method.plan.offset_factor,
          .local_steps = work == nullptr ? 1.0 : static_cast<double>(work->steps)};
}

template <class T>
AbsenceRule absence_rule(const Scenario& scenario, const RunMethod<T>& method, const RunSettings& run) {
  return {.state = scenario.participation.absent,
          .decay = scenario.participation.absent_decay,
          .slot = method.plan.error_slot,
          .unshared = run.kinds.num_unshared()};
}

namespace {

template <class T>
void declare_slot(const SlotSpec& slot, const SlotHosts<T>& hosts) {
  if (slot.owner == SlotOwner::client && hosts.clients != nullptr) hosts.clients->declare(slot);
  if (slot.owner == SlotOwner::shared && hosts.shared != nullptr) hosts.shared->declare(slot);
  const bool is_of_server = slot.owner == SlotOwner::server || slot.owner == SlotOwner::server_copy;
  if (is_of_server && hosts.server != nullptr) hosts.server->declare(slot);
}

template <class T>
void declare_operator(const ExchangeChannel<T>& channel, const SlotHosts<T>& hosts) {
  const Compressor<T>& compressor = *channel.compressor;
  if (!channel.client_slot.empty())
    declare_slot<T>({.name = channel.client_slot,
                     .owner = SlotOwner::client,
                     .double_buffered = true,
                     .length = compressor.client_state_size(channel.scope)},
                    hosts);
  if (channel.shared_slot.empty()) return;
  declare_slot<T>({.name = channel.shared_slot,
                   .owner = SlotOwner::shared,
                   .sync = SlotSync::broadcast,
                   .length = compressor.cohort_state_size(channel.scope)},
                  hosts);
  if (hosts.shared != nullptr)
    compressor.init_cohort_state(channel.random_key, channel.scope, hosts.shared->slot(channel.shared_slot).data());
}

}  // namespace

template <class T>
void declare_slots(const RunMethod<T>& method, const RunSettings& run, const SlotHosts<T>& hosts) {
  for (const SlotSpec& slot : method.local->slots()) declare_slot(slot, hosts);
  for (const SlotSpec& slot : method.plan.slots) declare_slot(slot, hosts);
  for (const ExchangeChannel<T>& channel : method.exchange.channels) declare_operator(channel, hosts);
  if (run.kinds.kept.empty()) return;
  for (const SlotSpec& slot : kept_slots(run.kinds.num_kept())) declare_slot(slot, hosts);
}

#define FL_INSTANTIATE(T)                                                                                                                 \
  template RunMethod<T> make_method<T>(const Scenario&, const LayerTable&, std::size_t, Device);                                          \
  template OptimizerHalves<T> make_optimizer<T>(const Scenario&, const LayerTable&, Device);                                              \
  template ExchangeChannel<T> make_channel<T>(const Scenario&, const LayerTable&, const std::string&, const CompressorSpec&, std::size_t, \
                                              std::size_t, Device);                                                                       \
  template RunSettings run_settings<T>(const Scenario&, const RunMethod<T>&, const FederatedProblem<T>&);                                 \
  template AbsenceRule absence_rule<T>(const Scenario&, const RunMethod<T>&, const RunSettings&);                                         \
  template void declare_slots<T>(const RunMethod<T>&, const RunSettings&, const SlotHosts<T>&);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
