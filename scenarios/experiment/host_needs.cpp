#include "scenarios/experiment/host_needs.hpp"

#include <algorithm>

#include "clients/learning/device_room.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {
namespace {

// Returns `key = "name": the host does it`.
std::string sentence(const std::string& key, const std::string& name, const std::string& does) {
  return key + " = \"" + name + "\": the host " + does;
}

bool has_cuda_half(const std::string& role, const std::string& name, Precision precision) {
  const Registry& registry = Registry::instance();
  const bool has_any = registry.contains("compressor", "identity", Device::cuda, precision);  // in this build
  return !has_any || registry.contains(role, name, Device::cuda, precision);
}

}  // namespace

template <class T>
std::vector<std::string> host_needs(const Scenario& scenario, const LocalUpdate<T>& local, const Feedback<T>& feedback,
                                    const Exchange<T>& exchange, const PostprocessorPlan& postprocessor, bool materialises) {
  std::vector<std::string> needs;
  if (const std::string does = feedback.plan().host_walks; !does.empty())
    needs.push_back(sentence("feedback.up.kind", scenario.feedback_up.kind, does));
  else if (!feedback.plan().offset_slot.empty())
    needs.push_back(sentence("feedback.up.kind", scenario.feedback_up.kind, "takes rows of state off every client's model"));
  if (const std::string does = local.host_walks(); !does.empty())
    needs.push_back(sentence("local.kind", scenario.local.kind, does));
  else if (std::ranges::any_of(local.slots(), [](const SlotSpec& slot) { return slot.owner == SlotOwner::client; }))
    needs.push_back(sentence("local.kind", scenario.local.kind, "may read the client state that the local update declares"));
  for (const ExchangeChannel<T>& channel : exchange.channels) {
    const std::string& kind = scenario.compressor_up(channel.name).part.kind;
    const std::string key = scenario.up.contains(channel.name) && !channel.name.empty() ? "compressor.up." + channel.name : "compressor.up";
    if (!has_cuda_half("compressor", kind, kPrecisionOf<T>))
      needs.push_back(sentence(key + ".kind", kind, "runs the operator, which has no CUDA half"));
  }
  if (const std::string& kind = scenario.postprocessor.kind;
      postprocessor.changes_vectors && !has_cuda_half("postprocessor", kind, kPrecisionOf<T>))
    needs.push_back(sentence("postprocessor.kind", kind, "runs the postprocessor, which has no CUDA half"));
  if (materialises) needs.emplace_back("--materialise: the host encodes and decodes every message");
  if (scenario.evaluate.published_metrics != EvaluateOptions::PublishedMetrics::none)
    needs.emplace_back("evaluate.published_metrics: the host keeps every gradient for the norms that published code stored");
  if (scenario.server.kind_of_averages() == ParameterKind::kept)
    needs.push_back(sentence("server.statistics", "local", "keeps every client's running statistics"));
  if (!scenario.model.keep.empty()) needs.emplace_back("model.keep: the host keeps every client's tensors");
  return needs;
}

template <class T>
std::vector<std::string> why_clients_train_on_cpu(const Scenario& scenario, const LocalUpdate<T>& local, const Model<T>& model) {
  std::vector<std::string> reasons;
  if (!local.descent() || local.vectors().size() > 1)
    reasons.push_back("local.kind = \"" + scenario.local.kind + "\" has no half for a GPU (`fedbits list local-updates --device cuda`)");
  if (!scenario.model.keep.empty() && local.descent() && local.descent()->proximal_mu > 0)
    reasons.emplace_back("local.proximal_mu: pulls each client's tensors of model.keep back to values of its own");
  const std::string& optimizer = scenario.local_optimizer.kind;
  if (local.descent() && local.descent()->by_optimizer && !has_cuda_half("local_optimizer", optimizer, kPrecisionOf<T>))
    reasons.push_back("local_optimizer.kind = \"" + optimizer + "\" has no half for a GPU (`fedbits list local-optimizers`)");
  if (!model.as_form()) reasons.push_back("model.kind = \"" + scenario.model.part.kind + "\" has no half for a GPU");
  if (model.training_data() != nullptr && device_data_bytes(*model.training_data()) == 0)
    reasons.emplace_back("[data]: the rows have no form for a GPU");
  return reasons;
}

template std::vector<std::string> why_clients_train_on_cpu(const Scenario&, const LocalUpdate<float>&, const Model<float>&);
template std::vector<std::string> why_clients_train_on_cpu(const Scenario&, const LocalUpdate<double>&, const Model<double>&);
template std::vector<std::string> host_needs(const Scenario&, const LocalUpdate<float>&, const Feedback<float>&, const Exchange<float>&,
                                             const PostprocessorPlan&, bool);
template std::vector<std::string> host_needs(const Scenario&, const LocalUpdate<double>&, const Feedback<double>&, const Exchange<double>&,
                                             const PostprocessorPlan&, bool);

}  // namespace fl
