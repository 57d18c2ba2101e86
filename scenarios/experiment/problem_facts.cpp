// The problem of a process without training rows, and the facts that a process with them computes for it.
#include <algorithm>
#include <numeric>

#include "clients/learning/bounded_gradients.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"
#include "scenarios/data/dataset_archive.hpp"
#include "scenarios/experiment/federated_problem.hpp"

namespace fl {

template <class T>
FederatedProblem<T>::FederatedProblem(const Scenario& scenario, std::shared_ptr<const LoadedData<T>> data,
                                      std::shared_ptr<const TrainingFacts> facts, const DataCatalog& catalog, ThreadPool& pool,
                                      std::filesystem::path folder)
    : pool_(pool),
      places_{std::move(folder), catalog},
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
  take_held_rows();
  if (data_->test) {
    rows_.test.resize(data_->test->num_rows);
    std::iota(rows_.test.begin(), rows_.test.end(), 0u);
  }
  about_key("model.kind", [&] { bind(scenario); });
  if (model_->traits().loss_is_convex != apart_->loss_is_convex)
    throw key_error("model.kind",
                    model_kind_ + " is not convex on these training rows, which only all of them tell: read the data set here");
}

// Gives the clients whose rows are here their rows. The others have empty shards: a file cannot make this process allocate memory for rows
// that it does not hold.
template <class T>
void FederatedProblem<T>::take_held_rows() {
  if (apart_->held.clients.empty()) return;
  std::uint32_t next = 0;
  for (const std::uint32_t client : apart_->held.clients) {
    Shard& rows = split_.shards[client];
    rows.resize(apart_->split.rows[client]);
    std::iota(rows.begin(), rows.end(), next);
    next += static_cast<std::uint32_t>(rows.size());
  }
}

template <class T>
bool FederatedProblem<T>::holds_rows_of(std::uint32_t client) const {
  return has_rows() || std::ranges::binary_search(apart_->held.clients, client);
}

template <class T>
ClientRows<T> FederatedProblem<T>::held_client_rows() const {
  const HeldRows& held = apart_->held;
  const bool are_test_rows = apart_->split.own_rows_are_test_rows;
  ClientRows<T> own{.data = are_test_rows ? &*data_->test : &train(), .shards = {}, .are_test_rows = are_test_rows};
  std::uint32_t next = 0;
  for (std::size_t k = 0; k < held.clients.size(); ++k) {
    Shard rows = split_.shards[held.clients[k]];
    if (are_test_rows) {
      rows.resize(held.own_test_rows[k]);
      for (std::uint32_t& row : rows) row = next++;
    }
    if (rows.empty()) continue;
    own.clients.push_back(held.clients[k]);
    own.shards.push_back(std::move(rows));
  }
  return own;
}

template <class T>
std::uint64_t FederatedProblem<T>::row_hash(std::uint32_t client) const {
  return hash_of_rows(train(), split_.shards[client]);
}

template <class T>
const std::vector<std::uint64_t>& FederatedProblem<T>::row_hashes() const {
  if (!has_rows()) return apart_->split.row_hashes;
  if (!split_.row_hashes.empty()) return split_.row_hashes;
  split_.row_hashes.resize(split_.shards.size());
  pool_.parallel_for(static_cast<std::uint32_t>(split_.shards.size()),
                     [this](std::uint32_t i, const Exec&) { split_.row_hashes[i] = row_hash(i); });
  return split_.row_hashes;
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
                 .row_hashes = row_hashes(),
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
    facts.least_convexity = least_convexity();
  }
  const OptimumSource& source = scenario.evaluate.optimum;
  if (has_optimum(source) && (needs_optimum || source.is_used)) facts.minima[key_of(source)] = optimum(source);
  return facts;
}

template <class T>
std::string FederatedProblem<T>::find_input(const std::string& key, const std::string& path) const {
  return places_.catalog.find_input(key, path, places_.folder);
}

#define FL_INSTANTIATE(T)                                                                                               \
  template FederatedProblem<T>::FederatedProblem(const Scenario&, std::shared_ptr<const LoadedData<T>>,                 \
                                                 std::shared_ptr<const TrainingFacts>, const DataCatalog&, ThreadPool&, \
                                                 std::filesystem::path);                                                \
  template void FederatedProblem<T>::take_held_rows();                                                                  \
  template bool FederatedProblem<T>::holds_rows_of(std::uint32_t) const;                                                \
  template ClientRows<T> FederatedProblem<T>::held_client_rows() const;                                                 \
  template std::string FederatedProblem<T>::find_input(const std::string&, const std::string&) const;                   \
  template std::uint64_t FederatedProblem<T>::row_hash(std::uint32_t) const;                                            \
  template const std::vector<std::uint64_t>& FederatedProblem<T>::row_hashes() const;                                   \
  template std::uint64_t FederatedProblem<T>::own_labels(std::size_t) const;                                            \
  template bool FederatedProblem<T>::own_rows_are_test_rows() const;                                                    \
  template SplitSkew FederatedProblem<T>::skew() const;                                                                 \
  template std::vector<double> FederatedProblem<T>::gradient_variance() const;                                          \
  template TrainingFacts FederatedProblem<T>::facts_for(const Scenario&, bool);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
