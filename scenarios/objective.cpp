#include "scenarios/objective.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "clients/constants.hpp"
#include "clients/optimum.hpp"
#include "fl_core/data_generator.hpp"
#include "fl_core/partitioner.hpp"
#include "fl_core/registry.hpp"

namespace fl {

template <class T>
Objective<T>::Objective(const Scenario& scenario, const DataCatalog& catalog, ThreadPool& pool) : pool_(pool) {
  load(scenario, catalog);
  hold_out(scenario.data.test_fraction, scenario.seeds.data);
  split(scenario);
  bind(scenario);
}

template <class T>
void Objective<T>::load(const Scenario& scenario, const DataCatalog& catalog) {
  const Part& synthetic = scenario.data.synthetic;
  if (synthetic.kind.empty()) {
    data_ = load_data<T>(scenario.data.file(), catalog);
    if (scenario.data.labels == LabelKind::classes) validate_for_classification(data_.train);
  } else {
    data_.train =
        make_part<DataGenerator<T>>("data", synthetic.kind, synthetic.options, Device::cpu, kPrecisionOf<T>)->generate(scenario.seeds.data);
    data_.train_where = "synthetic";
  }
}

// Test rows drawn at random; both parts keep file order.
template <class T>
void Objective<T>::hold_out(double fraction, std::uint64_t seed) {
  Shard rows(data_.train.num_rows);
  std::iota(rows.begin(), rows.end(), 0u);
  const auto held_out = static_cast<std::size_t>(fraction * static_cast<double>(rows.size()));
  if (held_out > 0) {
    if (data_.test)
      throw ConfigError("data.test_fraction: there is a test set already (" + data_.test_where + "): set data.test = \"none\"");
    RandomSequence(seed, Purpose::holdout).shuffle(rows.begin(), rows.end());
    test_rows_.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(held_out));
    rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(held_out));
    std::sort(test_rows_.begin(), test_rows_.end());
    std::sort(rows.begin(), rows.end());
    test_is_held_out_ = true;
  } else if (data_.test) {
    test_rows_.resize(data_.test->num_rows);
    std::iota(test_rows_.begin(), test_rows_.end(), 0u);
  }
  train_rows_ = std::move(rows);
}

template <class T>
const Dataset<T>* Objective<T>::test() const {
  if (test_is_held_out_) return &data_.train;
  return data_.test ? &*data_.test : nullptr;
}

// Partitioners see the training rows alone, numbered from 0; their numbers are mapped back to rows of the data.
template <class T>
void Objective<T>::split(const Scenario& scenario) {
  std::vector<std::int32_t> labels;
  if (!data_.train.label.empty())
    for (const std::uint32_t row : train_rows_) labels.push_back(data_.train.label[row]);
  const PartitionRequest request{
      .num_rows = train_rows_.size(),
      .num_classes = data_.train.num_classes,
      .label = labels,
      .natural_begin = test_is_held_out_ ? std::span<const std::size_t>{} : std::span<const std::size_t>(data_.train.client_begin),
      .num_clients = static_cast<std::size_t>(scenario.partition.clients),
      .seed = scenario.seeds.data};
  const Part& part = scenario.partition.part;
  shards_ = make_part<Partitioner>("partitioner", part.kind, part.options, Device::cpu, Precision::float64)->split(request);
  for (Shard& shard : shards_)
    for (std::uint32_t& row : shard) row = train_rows_[row];
  split_hash_ = hash_of(shards_);
}

template <class T>
void Objective<T>::bind(const Scenario& scenario) {
  const ModelSpec& spec = scenario.model;
  model_ = make_part<Model<T>>("model", spec.part.kind, spec.part.options, Device::cpu, kPrecisionOf<T>);
  model_->bind(data_.train);
  layers_ = model_->layers();

  const auto m = static_cast<double>(train_rows_.size()), n = static_cast<double>(shards_.size());
  for (const Shard& shard : shards_)
    weights_.push_back(spec.weights == ModelSpec::Weights::uniform ? 1 / n : static_cast<double>(shard.size()) / m);
  names_ = {{"n", n}, {"m", m}, {"d", static_cast<double>(P())}};
  const double l2 = spec.l2.resolve(names_for(spec.l2));
  const double nonconvex = spec.nonconvex.resolve(names_for(spec.nonconvex));
  if (l2 < 0 || nonconvex < 0)
    throw ConfigError("model.l2 and model.nonconvex: must be >= 0, are " + std::to_string(l2) + " and " + std::to_string(nonconvex));
  model_->set_regulariser(l2, nonconvex);
  names_["l2"] = l2;
}

template <class T>
const std::map<std::string, double>& Objective<T>::names_for(const Expression& expression) {
  if (!expression.is_number()) need_constants();
  return names_;
}

template class Objective<float>;
template class Objective<double>;

}  // namespace fl
