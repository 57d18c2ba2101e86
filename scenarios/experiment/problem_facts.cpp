// The problem of a process without training rows, and the facts that a process with them computes for it.
#include <algorithm>
#include <numeric>

#include "clients/bounded_gradients.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"
#include "scenarios/experiment/federated_problem.hpp"

namespace fl {

template <class T>
FederatedProblem<T>::FederatedProblem(const Scenario& scenario, std::shared_ptr<const LoadedData<T>> data,
                                      std::shared_ptr<const TrainingFacts> facts, const DataCatalog& catalog, ThreadPool& pool,
                                      std::filesystem::path folder)
    : pool_(pool),
      folders_{std::move(folder), catalog.folders()},
      model_kind_(scenario.model.part.kind),
      model_(about_key("model.kind",
                       [&] {
                         return make_part<Model<T>>("model", scenario.model.part.kind, scenario.model.part.options, Device::cpu,
                                                    kPrecisionOf<T>);
                       })),
      data_(std::move(data)),
      facts_(std::make_shared<GlobalFacts>()),
      weighs_rows_(scenario.model.weights == ModelSpec::Weights::rows),
      apart_(std::move(facts)) {
  facts_->curvature = apart_->curvature;
  facts_->minima = apart_->minima;
  split_ = {std::vector<Shard>(apart_->split.rows.size()), apart_->split.hash, apart_->split.data_hash, apart_->split.note};
  if (data_->test) {
    rows_.test.resize(data_->test->num_rows);
    std::iota(rows_.test.begin(), rows_.test.end(), 0u);
  }
  about_key("model.kind", [&] { bind(scenario); });
  if (model_->traits().loss_is_convex != apart_->loss_is_convex)
    throw key_error("model.kind",
                    model_kind_ + " is not convex on these training rows, which only their rows tell: let the server read them");
}

template <class T>
std::uint64_t FederatedProblem<T>::own_labels(std::size_t client) const {
  if (!has_rows()) return apart_->split.own_labels[client];
  const ClientRows<T>& own = client_rows();
  const auto found = std::ranges::lower_bound(own.clients, client);
  if (found == own.clients.end() || *found != client) return 0;
  return own.shards[static_cast<std::size_t>(found - own.clients.begin())].size() * own.data->labels_per_row();
}

template <class T>
bool FederatedProblem<T>::own_rows_are_test_rows() const {
  return has_rows() ? client_rows().are_test_rows : apart_->split.own_rows_are_test_rows;
}

template <class T>
SplitSkew FederatedProblem<T>::skew() const {
  return has_rows() ? measure_skew(split_.shards, train().label, train().num_classes) : apart_->split.skew;
}

template <class T>
std::vector<double> FederatedProblem<T>::gradient_variance() const {
  if (!has_rows()) return apart_->gradient_variance;
  const auto* bounded = dynamic_cast<const BoundedGradients*>(model_.get());
  if (bounded == nullptr) return {};
  std::vector<double> variance;
  for (const Shard& shard : split_.shards) {
    const std::optional<double> bound = bounded->gradient_variance(shard);
    if (!bound) return {};
    variance.push_back(*bound);
  }
  return variance;
}

template <class T>
TrainingFacts FederatedProblem<T>::facts_for(const Scenario& scenario, bool needs_optimum) {
  TrainingFacts facts;
  facts.split = {.hash = split_.hash,
                 .data_hash = split_.data_hash,
                 .note = split_.note,
                 .rows = {},
                 .own_labels = {},
                 .own_rows_are_test_rows = own_rows_are_test_rows(),
                 .skew = skew()};
  for (std::size_t i = 0; i < split_.shards.size(); ++i) {
    facts.split.rows.push_back(num_rows_of(i));
    facts.split.own_labels.push_back(own_labels(i));
  }
  facts.loss_is_convex = model_->traits().loss_is_convex;
  facts.gradient_variance = gradient_variance();
  if (model_->second_order() != nullptr) {
    add_curvature();
    facts.curvature = facts_->curvature;
    facts.client_smoothness = client_smoothness();
    if (scenario.evaluate.average) facts.least_convexity = least_convexity();
  }
  const OptimumSource& source = scenario.evaluate.optimum;
  if (has_optimum(source) && (needs_optimum || source.is_used)) facts.minima[key_of(source)] = optimum(source);
  return facts;
}

#define FL_INSTANTIATE(T)                                                                                               \
  template FederatedProblem<T>::FederatedProblem(const Scenario&, std::shared_ptr<const LoadedData<T>>,                 \
                                                 std::shared_ptr<const TrainingFacts>, const DataCatalog&, ThreadPool&, \
                                                 std::filesystem::path);                                                \
  template std::uint64_t FederatedProblem<T>::own_labels(std::size_t) const;                                            \
  template bool FederatedProblem<T>::own_rows_are_test_rows() const;                                                    \
  template SplitSkew FederatedProblem<T>::skew() const;                                                                 \
  template std::vector<double> FederatedProblem<T>::gradient_variance() const;                                          \
  template TrainingFacts FederatedProblem<T>::facts_for(const Scenario&, bool);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
