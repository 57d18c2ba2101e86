#include "scenarios/experiment/federated_problem.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "clients/learning/constants.hpp"
#include "clients/learning/expects_shards.hpp"
#include "clients/learning/optimum.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/data/partitioner.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/data/feature_shift.hpp"
#include "scenarios/data/generate.hpp"
#include "scenarios/data/hold_out.hpp"
#include "scenarios/data/memory_limit.hpp"
#include "scenarios/experiment/model_file.hpp"
#include "scenarios/file/early_checks.hpp"

namespace fl {

namespace {

constexpr std::size_t kKeptData = 4;
constexpr std::size_t kFactBytes = 64u << 20;  // of minimisers; a sweep with many seeds returns to each of them

std::uint64_t test_seed_of(const Scenario& s) { return s.data.test_seed.value_or(s.seeds.data); }

// Returns the tables of a scenario that determine which data it reads, with the data seed if that affects them.
Scenario data_tables(const Scenario& s) {
  Scenario bare;
  bare.name = "data";
  bare.rounds = 1;
  bare.precision = s.precision;
  bare.data = s.data;
  // Rows are held out after reading. Means over training rows depend on which rows those are.
  bare.data.test_seed.reset();
  if (s.data.formats.table.missing == MissingValues::mean && s.data.test_fraction > 0) bare.data.test_seed = test_seed_of(s);
  if (!s.data.synthetic.kind.empty()) bare.seeds.data = s.seeds.data;
  return bare;
}

template <class T>
LoadedData<T> load(const Scenario& scenario, const DataCatalog& catalog, const std::filesystem::path& folder) {
  const Part& synthetic = scenario.data.synthetic;
  LoadedData<T> data;
  if (synthetic.kind.empty()) {
    FileDataOptions options = scenario.data.file();
    options.test_seed = test_seed_of(scenario);
    options.folder = folder;
    data = load_data<T>(options, catalog);
    // Repetitive text may have a single continuation; a table with one class is a mistake.
    if (scenario.data.labels == LabelKind::classes && data.train.vocabulary.size == 0) validate_for_classification(data.train);
  } else {
    data = generate_data<T>(synthetic.kind, synthetic.options, scenario.seeds.data);
  }
  return data;
}

// Returns the error for a fact that a server's file of data does not hold.
ConfigError unknown(const std::string& fact) {
  return ConfigError(fact + " is computed from training rows, and the file of server data does not hold it: write that file again, from " +
                     "the same scenario");
}

const std::vector<double>& known(const std::vector<double>& fact, const char* name) {
  if (fact.empty()) throw unknown(name);
  return fact;
}

}  // namespace

std::string split_text(const Scenario& scenario) {
  Scenario bare = data_tables(scenario);
  bare.partition = scenario.partition;
  bare.data.test_seed = scenario.data.test_seed;
  bare.seeds.data = scenario.seeds.data;
  return to_toml(bare);
}

std::string problem_text(const Scenario& scenario) {
  Scenario bare;
  bare.name = "problem";
  bare.rounds = 1;
  bare.precision = scenario.precision;
  bare.seeds.data = scenario.seeds.data;
  bare.data = scenario.data;
  bare.partition = scenario.partition;
  bare.model = scenario.model;
  return to_toml(bare);
}

ProblemCache::ProblemCache(DataCatalog catalog) : catalog_(std::move(catalog)) {}
ProblemCache::~ProblemCache() = default;
template <>
std::vector<ProblemCache::Entry<float>>& ProblemCache::entries<float>() {
  return entries32_;
}
template <>
std::vector<ProblemCache::Entry<double>>& ProblemCache::entries<double>() {
  return entries64_;
}

template <class T>
std::shared_ptr<const LoadedData<T>> ProblemCache::data(const Scenario& scenario, bool as_pixels, const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  std::vector<Entry<T>>& kept = entries<T>();
  const std::string key = to_toml(data_tables(scenario)) + (as_pixels ? "" : "dense") + "\n" + folder.string();
  for (const Entry<T>& entry : kept)
    if (entry.key == key) return entry.data;
  if (kept.size() == kKeptData) kept.erase(kept.begin());
  const Preparation reading("the data are read");
  auto loaded = std::make_shared<LoadedData<T>>(load<T>(scenario, catalog_, folder));
  if (!as_pixels) {
    if (!loaded->train.images.augment.is_none())
      throw key_error("data.augment", "model.kind = \"" + scenario.model.part.kind + "\" takes images as plain rows; a neural network can");
    loaded->train.expand_pixels();
    if (loaded->test) loaded->test->expand_pixels();
  }
  return kept.emplace_back(Entry<T>{key, std::move(loaded)}).data;
}
template std::shared_ptr<const LoadedData<float>> ProblemCache::data<float>(const Scenario&, bool, const std::filesystem::path&);
template std::shared_ptr<const LoadedData<double>> ProblemCache::data<double>(const Scenario&, bool, const std::filesystem::path&);

std::shared_ptr<GlobalFacts> ProblemCache::facts(const Scenario& scenario, const std::filesystem::path& folder) {
  if (scenario.model.weights != ModelSpec::Weights::rows) return std::make_shared<GlobalFacts>();
  Scenario bare = data_tables(scenario);
  bare.model = scenario.model;
  if (scenario.data.test_fraction > 0) bare.seeds.data = test_seed_of(scenario);  // determines the rows held out
  const std::string key = to_toml(bare) + "\n" + folder.string();
  const std::lock_guard lock(mutex_);
  for (const auto& [known, facts] : facts_)
    if (known == key) return facts;
  std::size_t bytes = 0;
  for (const auto& [_, facts] : facts_) bytes += facts->bytes;
  if (bytes > kFactBytes) facts_.erase(facts_.begin(), facts_.begin() + static_cast<std::ptrdiff_t>(facts_.size() / 2));
  return facts_.emplace_back(key, std::make_shared<GlobalFacts>()).second;
}

template <class T>
FederatedProblem<T>::FederatedProblem(const Scenario& scenario, ProblemCache& cache, ThreadPool& pool, std::filesystem::path folder)
    : pool_(pool),
      places_{std::move(folder), cache.catalog()},
      model_kind_(scenario.model.part.kind),
      model_(about_key("model.kind",
                       [&] {
                         return make_part<Model<T>>("model", scenario.model.part.kind, scenario.model.part.options, Device::cpu,
                                                    kPrecisionOf<T>);
                       })),
      data_(about_key(key_of_data(scenario.data), [&] { return cache.data<T>(scenario, model_->traits().takes_pixels, places_.folder); })),
      facts_(cache.facts(scenario, places_.folder)),
      weighs_rows_(scenario.model.weights == ModelSpec::Weights::rows) {
  hold_out(scenario.data.test_fraction, test_seed_of(scenario));
  about_key("partition.kind", [&] { split(scenario); });
  about_key("model.kind", [&] { bind(scenario); });
}

template <class T>
FederatedProblem<T>::FederatedProblem(const Scenario& scenario, const DataCatalog& catalog, ThreadPool& pool, std::filesystem::path folder)
    : FederatedProblem(scenario, *std::make_unique<ProblemCache>(catalog), pool, std::move(folder)) {}

// Draws the test rows at random; training and test rows both keep file order.
template <class T>
void FederatedProblem<T>::hold_out(double fraction, std::uint64_t seed) {
  Shard rows(data_->train.num_rows);
  std::iota(rows.begin(), rows.end(), 0u);
  const auto held_out = static_cast<std::size_t>(fraction * static_cast<double>(rows.size()));
  if (held_out > 0 && !data_->is_held_out) {
    if (data_->test)
      throw key_error("data.test_fraction", "there is a test set already (" + data_->test_where + "): set data.test = \"none\"");
    rows_.test = held_out_rows(data_->train.num_rows, fraction, seed);
    Shard others;
    std::set_difference(rows.begin(), rows.end(), rows_.test.begin(), rows_.test.end(), std::back_inserter(others));
    rows = std::move(others);
    rows_.test_is_held_out = true;
  } else if (data_->test) {
    rows_.test.resize(data_->test->num_rows);
    std::iota(rows_.test.begin(), rows_.test.end(), 0u);
  }
  rows_.train = std::move(rows);
}

template <class T>
const Dataset<T>* FederatedProblem<T>::test() const {
  if (rows_.test_is_held_out) return &train();
  return data_->test ? &*data_->test : nullptr;
}

// Returns each client's test rows if the data have clients of their own and the split keeps each of these whole: their test rows follow
// them. Else returns an empty list.
template <class T>
std::vector<Shard> FederatedProblem<T>::test_shards() const {
  if (!data_->test || data_->test->client_begin.empty() || data_->train.client_begin.empty()) return {};
  const std::vector<std::size_t>&begin = data_->train.client_begin, &test_begin = data_->test->client_begin;
  constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> owner(begin.size() - 1, kNobody);
  for (std::size_t i = 0; i < split_.shards.size(); ++i)
    for (const std::uint32_t row : split_.shards[i]) {
      std::size_t& whose = owner[static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), row) - begin.begin() - 1)];
      if (whose != kNobody && whose != i) return {};
      whose = i;
    }
  std::vector<Shard> shards(split_.shards.size());
  for (std::size_t c = 0; c < std::min(owner.size(), test_begin.size() - 1); ++c)
    for (std::size_t row = test_begin[c]; owner[c] != kNobody && row < test_begin[c + 1]; ++row)
      shards[owner[c]].push_back(static_cast<std::uint32_t>(row));
  return shards;
}

template <class T>
const ClientRows<T>& FederatedProblem<T>::client_rows() const {
  if (client_rows_) return *client_rows_;
  if (!has_rows() && !apart_->held.clients.empty()) return client_rows_.emplace(held_client_rows());
  ClientRows<T> own{.data = data_->test ? &*data_->test : nullptr, .shards = test_shards(), .are_test_rows = true};
  std::vector<Shard> with_rows;
  for (std::uint32_t client = 0; client < own.shards.size(); ++client) {
    if (own.shards[client].empty()) continue;
    own.clients.push_back(client);
    with_rows.push_back(std::move(own.shards[client]));
  }
  own.shards = std::move(with_rows);
  if (own.shards.empty()) {
    own = {.data = &train(), .shards = split_.shards, .are_test_rows = false};
    own.clients.resize(split_.shards.size());
    std::iota(own.clients.begin(), own.clients.end(), 0u);
  }
  return client_rows_.emplace(std::move(own));
}

// Returns the group of each training row: the value of a feature (1 = first), or the client of the data's own partition.
template <class T>
std::vector<std::uint32_t> FederatedProblem<T>::groups(std::size_t feature) const {
  const Dataset<T>& data = data_->train;
  std::vector<std::uint32_t> group;
  if (feature > data.num_features)
    throw key_error("partition.feature", std::to_string(feature) + ", but the data has " + std::to_string(data.num_features) + " features");
  if (feature == 0) {
    const auto& begin = data.client_begin;
    if (begin.size() < 2) return group;
    for (const std::uint32_t row : rows_.train)
      group.push_back(static_cast<std::uint32_t>(std::upper_bound(begin.begin(), begin.end(), row) - begin.begin() - 1));
    return group;
  }
  std::map<T, std::uint32_t> number_of;  // in order of first appearance
  std::vector<T> features(data.num_features);
  for (const std::uint32_t row : rows_.train) {
    data.gather(std::span(&row, 1), features.data());
    const auto next = static_cast<std::uint32_t>(number_of.size());
    group.push_back(number_of.try_emplace(features[feature - 1], next).first->second);
  }
  return group;
}

// Splits the training rows. Partitioners see only these, numbered from 0; the results are mapped back to rows of the data.
template <class T>
void FederatedProblem<T>::split(const Scenario& scenario) {
  const Preparation splitting("the rows are split over the clients");
  const Part& part = scenario.partition.part;
  const auto partitioner = make_part<Partitioner>("partitioner", part.kind, part.options, Device::cpu, Precision::float64);
  partitioner->open([this](const std::string& path) { return find_input("partition.path", path); });
  const std::vector<std::uint32_t> group = groups(partitioner->group_feature());
  std::vector<std::int32_t> labels;
  if (!data_->train.label.empty())
    for (const std::uint32_t row : rows_.train) labels.push_back(data_->train.label[row]);
  rows_.offered = rows_.train;
  Hash64 hash;
  hash.add_value(std::uint64_t{rows_.train.size()}).add_values(std::span<const std::int32_t>(labels));
  if (!data_->train.target.empty())
    for (const std::uint32_t row : rows_.train) hash.add_value(data_->train.target[row]);
  split_.data_hash = hash.value();
  const PartitionRequest request{
      .num_rows = rows_.train.size(),
      .num_classes = data_->train.num_classes,
      .label = labels,
      .natural_begin = rows_.test_is_held_out ? std::span<const std::size_t>{} : std::span<const std::size_t>(data_->train.client_begin),
      .num_clients = static_cast<std::size_t>(scenario.partition.clients),
      .seed = scenario.seeds.data,
      .group = group,
      .data_hash = split_.data_hash};
  split_.shards = partitioner->split(request);
  split_.note = partitioner->note(request);
  std::size_t held = 0;
  for (Shard& shard : split_.shards) {
    for (std::uint32_t& row : shard) row = rows_.train[row];
    held += shard.size();
  }
  split_.hash = hash_of(split_.shards);
  if (held < rows_.train.size()) leave_out_unheld();
  const std::vector<FeatureShift> shifts = partitioner->feature_shifts(split_.shards.size());
  if (shifts.empty()) return;
  seen_ = as_clients_see<T>(data_->train, split_.shards, shifts, scenario.seeds.data);
  facts_ = std::make_shared<GlobalFacts>();  // f depends on the split
}

// Removes rows that no client holds from f.
template <class T>
void FederatedProblem<T>::leave_out_unheld() {
  rows_.train.clear();
  for (const Shard& shard : split_.shards) rows_.train.insert(rows_.train.end(), shard.begin(), shard.end());
  std::sort(rows_.train.begin(), rows_.train.end());
  facts_ = std::make_shared<GlobalFacts>();
}

template <class T>
SplitFile FederatedProblem<T>::split_file() const {
  if (seen_) throw key_error("partition.kind", "clients see their rows changed by this partitioner, which a split file does not hold");
  SplitFile file{.data = data_->train.name, .client_of = {}, .num_clients = split_.shards.size(), .data_hash = split_.data_hash};
  std::vector<std::uint32_t> owner(data_->train.num_rows, kNoClient);
  for (std::size_t i = 0; i < split_.shards.size(); ++i)
    for (const std::uint32_t row : split_.shards[i]) owner[row] = static_cast<std::uint32_t>(i);
  for (const std::uint32_t row : rows_.offered) file.client_of.push_back(owner[row]);
  return file;
}

template <class T>
void FederatedProblem<T>::bind(const Scenario& scenario) {
  const ModelSpec& spec = scenario.model;
  if (train().vocabulary.size > 0 && !model_->traits().takes_tokens)
    throw key_error("model.kind", spec.part.kind + " cannot read data set \"" + train().name +
                                      "\", whose features are tokens; a neural network with an embedding can");
  model_->bind(train());
  if (auto* model = dynamic_cast<ExpectsShards*>(model_.get()); model != nullptr && train().is_sparse) model->expect_shards(split_.shards);
  layers_ = model_->layers();
  if (const std::string why = why_misplaced(layers_); !why.empty()) throw key_error("model", "is too large: layer " + why);
  // The model, a client's vector, its gradient, and the server's sum in double.
  require_memory(static_cast<double>(P()) * static_cast<double>(3 * sizeof(T) + sizeof(double)),
                 "a run of a model with " + std::to_string(P()) + " parameters", "smaller layers need less");

  const std::size_t num_clients = split_.shards.size();
  std::size_t num_rows = 0;
  for (std::size_t i = 0; i < num_clients; ++i) num_rows += num_rows_of(i);
  const auto m = static_cast<double>(num_rows), n = static_cast<double>(num_clients);
  for (std::size_t i = 0; i < num_clients; ++i)
    weights_.push_back(spec.weights == ModelSpec::Weights::uniform ? 1 / n : static_cast<double>(num_rows_of(i)) / m);
  constants_.names = {{"n", n}, {"m", m}, {"d", static_cast<double>(P())}};
  const double l2 = resolve(spec.l2, "model.l2"), nonconvex = resolve(spec.nonconvex, "model.nonconvex");
  if (l2 < 0 || nonconvex < 0)
    throw key_error(l2 < 0 ? "model.l2" : "model.nonconvex",
                    "must be >= 0, model.l2 and model.nonconvex are " + std::to_string(l2) + " and " + std::to_string(nonconvex));
  model_->set_regulariser(l2, nonconvex);
  constants_.has_regulariser = true;
  constants_.names["l2"] = l2;
  if (constants_.names.contains("L")) add_curvature();  // mu, which is not available to the rules of the regularisers
}

template <class T>
double FederatedProblem<T>::resolve(const Expression& rule, const std::string& key) {
  const std::map<std::string, double>& names = names_for(rule, key);
  return about_key(key, [&] { return rule.resolve(names); });
}

// Adds L of f without regulariser, and mu.
template <class T>
void FederatedProblem<T>::add_curvature() {
  const std::lock_guard lock(facts_->mutex);
  if (!facts_->curvature && !has_rows()) throw unknown("the smoothness of f");
  const Preparation computing("the smoothness of f is computed");
  if (!facts_->curvature) facts_->curvature = Objective::of(*model_, whole(), whole_weights()).loss_curvature();
  const SecondOrder::Curvature& bounds = *facts_->curvature;
  constants_.names["L"] = std::max(bounds.largest, -bounds.least);
  if (constants_.has_regulariser) constants_.names["mu"] = std::max(0.0, bounds.least + model_->regulariser().least_curvature());
}

template <class T>
const std::vector<double>& FederatedProblem<T>::client_smoothness() {
  if (!constants_.client_smoothness.empty()) return constants_.client_smoothness;
  if (!has_rows()) return constants_.client_smoothness = known(apart_->client_smoothness, "the smoothness of each client's loss");
  const Preparation computing("the smoothness of each client's loss is computed");
  std::vector<double> smoothness(split_.shards.size());
  pool_.parallel_for(static_cast<std::uint32_t>(smoothness.size()),
                     [&](std::uint32_t i, const Exec&) { smoothness[i] = model_->smoothness(split_.shards[i]); });
  return constants_.client_smoothness = std::move(smoothness);
}

// Computes only the constants that a rule names, because L_max needs an eigenvalue per client.
template <class T>
const std::map<std::string, double>& FederatedProblem<T>::names_for(const Expression& rule, const std::string& key) {
  const std::vector<std::string> named = names_of(rule);
  const auto names = [&named](const char* name) { return std::ranges::find(named, name) != named.end(); };
  const bool is_theory = names("theory") || names("tight");
  if (is_theory || names("L") || names("L_max") || names("mu")) {
    if (model_->second_order() == nullptr) throw key_error(key, needs_smoothness_text(rule, key, model_kind_));
    add_curvature();
  }
  if (is_theory || names("L_max")) constants_.names["L_max"] = std::ranges::max(client_smoothness());
  if (names("nonconvex") && constants_.has_regulariser) constants_.names["nonconvex"] = model_->regulariser().nonconvex;
  return constants_.names;
}

template <class T>
double FederatedProblem<T>::least_convexity() const {
  if (!has_rows() && !apart_->least_convexity) throw unknown("the strong convexity of each client's loss");
  if (!has_rows()) return *apart_->least_convexity;
  static constexpr double kOne = 1;
  std::vector<double> least(split_.shards.size());
  pool_.parallel_for(static_cast<std::uint32_t>(split_.shards.size()), [&](std::uint32_t i, const Exec&) {
    least[i] = Objective::of(*model_, std::span(&split_.shards[i], 1), std::span(&kOne, 1)).loss_curvature().least;
  });
  return std::max(0.0, *std::min_element(least.begin(), least.end()) + model_->regulariser().least_curvature());
}

template <class T>
bool FederatedProblem<T>::has_optimum(const OptimumSource& source) const {
  return !source.path.empty() || (model_->second_order() != nullptr && model_->is_convex());
}

// Returns all rows as one shard if f does not depend on the split, so that cells with other splits get identical numbers.
template <class T>
std::span<const Shard> FederatedProblem<T>::whole() const {
  return weighs_rows_ ? std::span<const Shard>(&rows_.train, 1) : std::span<const Shard>(split_.shards);
}
template <class T>
std::span<const double> FederatedProblem<T>::whole_weights() const {
  static constexpr double kOne = 1;
  return weighs_rows_ ? std::span<const double>(&kOne, 1) : std::span<const double>(weights_);
}

template <class T>
std::string FederatedProblem<T>::key_of(const OptimumSource& source) const {
  const Regulariser& regulariser = model_->regulariser();
  return source.path + "|" + to_string(Value{regulariser.l2}) + "|" + to_string(Value{regulariser.nonconvex});
}

template <class T>
const Minimum& FederatedProblem<T>::optimum(const OptimumSource& source) {
  const std::string key = key_of(source);
  const std::lock_guard lock(facts_->mutex);
  if (const auto known = facts_->minima.find(key); known != facts_->minima.end()) return known->second;
  if (!has_rows()) throw unknown("the minimum of f");
  const Preparation looking("the minimum of f is looked for");
  if (source.path.empty()) {
    Optimum found = find_optimum(pool_.exec(0), *model_, whole(), whole_weights());
    facts_->bytes += found.x.size() * sizeof(double);
    return facts_->minima[key] = {std::move(found.x), found.f, found.error, found.is_known()};
  }
  std::vector<double> x = read_parameters(find_input("evaluate.optimum", source.path), layers_, "evaluate.optimum");
  const double value = Objective::of(*model_, whole(), whole_weights()).evaluate(pool_.exec(0), x.data(), nullptr);
  facts_->bytes += x.size() * sizeof(double);
  return facts_->minima[key] = {std::move(x), value, std::numeric_limits<double>::quiet_NaN(), true};
}

template class FederatedProblem<float>;
template class FederatedProblem<double>;

}  // namespace fl
