// The federated problem of a scenario: the data, their split over clients, the model, and the constants of the theory.
//
//   f(x) = sum_i w_i f_i(x),   f_i(x) = mean over client i's rows of l(x; row) + regulariser(x)
//
// Constants and the optimum are computed on first use. Cells of one process share their data, and results that depend on f alone, through a
// ProblemCache: with weights by rows, f does not depend on the split.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "clients/learning/model.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "scenarios/data/load.hpp"
#include "scenarios/experiment/training_facts.hpp"
#include "scenarios/file/scenario.hpp"
#include "scenarios/partitioners/split_file.hpp"

namespace fl {

// Cached results for one global objective.
struct GlobalFacts {
  std::mutex mutex;                                 // held during computations
  std::atomic<std::size_t> bytes = 0;               // size of the minima
  std::optional<SecondOrder::Curvature> curvature;  // bounds of the loss' Hessian, regulariser excluded
  std::map<std::string, Minimum> minima;            // by source and regulariser
};

// Returns the key of the data split: scenarios with equal keys have equal splits.
[[nodiscard]] FL_API std::string split_text(const Scenario& scenario);
// Returns the key of the problem: scenarios with equal keys have equal problems.
[[nodiscard]] FL_API std::string problem_text(const Scenario& scenario);

// The rows on which clients are judged one by one: each client's own test rows if the data have them, else its training rows.
template <class T>
struct ClientRows {
  const Dataset<T>* data = nullptr;
  std::vector<Shard> shards;  // none is empty; fewer than clients if some have no test rows
  bool are_test_rows = false;
  std::vector<std::uint32_t> clients{};  // the client of each shard
};

// Data and results that the problems of one process share.
class FL_API ProblemCache {
 public:
  explicit ProblemCache(DataCatalog catalog);
  ~ProblemCache();
  // Returns the data of a scenario whose file is in `folder`. Data are loaded or generated once, and kept until a few newer sets replace
  // them. Images are stored as pixels or as dense rows.
  template <class T>
  [[nodiscard]] std::shared_ptr<const LoadedData<T>> data(const Scenario& scenario, bool as_pixels, const std::filesystem::path& folder);
  // Returns the cached facts about f if f does not depend on the split, else new ones.
  [[nodiscard]] std::shared_ptr<GlobalFacts> facts(const Scenario& scenario, const std::filesystem::path& folder);
  [[nodiscard]] const DataCatalog& catalog() const { return catalog_; }

 private:
  template <class T>
  struct Entry {
    std::string key;
    std::shared_ptr<const LoadedData<T>> data;
  };
  template <class T>
  [[nodiscard]] std::vector<Entry<T>>& entries();
  std::mutex mutex_;  // held while data are loaded, so that concurrent requests load them once
  DataCatalog catalog_;
  std::vector<Entry<float>> entries32_;  // newest last
  std::vector<Entry<double>> entries64_;
  std::vector<std::pair<std::string, std::shared_ptr<GlobalFacts>>> facts_;  // newest last
};

// Where files of the scenario are looked for.
struct ProblemPlaces {
  std::filesystem::path folder;  // the scenario file's
  DataCatalog catalog;
};

// The rows of a problem, by their use.
struct ProblemRows {
  Shard offered;  // rows available for the split
  Shard train;    // rows that clients hold: all offered rows, unless a split file leaves some out
  Shard test;
  bool test_is_held_out = false;
};

// The division of rows among clients.
struct ProblemSplit {
  std::vector<Shard> shards;
  std::uint64_t hash = 0, data_hash = 0;  // of the shards, and of the offered rows
  std::string note;
  mutable std::vector<std::uint64_t> row_hashes{};  // empty until first use
};

// Numbers that rules may name.
struct RuleConstants {
  std::map<std::string, double> names;
  bool has_regulariser = false;           // whether the model's regulariser is resolved
  std::vector<double> client_smoothness;  // [n], empty until first use
};

template <class T>
class FederatedProblem {
 public:
  // Takes data from the cache, holds out test rows, splits, and binds the model. Throws ConfigError or DataError before anything is
  // written. `folder` is the scenario file's folder, where relative paths are looked for first.
  FederatedProblem(const Scenario& scenario, ProblemCache& cache, ThreadPool& pool, std::filesystem::path folder = {});
  // Does the same with its own cache.
  FederatedProblem(const Scenario& scenario, const DataCatalog& catalog, ThreadPool& pool, std::filesystem::path folder = {});
  // Makes the problem of a process without all training rows. `data` has in data->train the rows of the clients facts->held, or the form of
  // all rows (form_of) if there are none, and `facts` what is known of the others. The catalog's folders are searched for files that the
  // scenario names. Throws ConfigError if the model cannot be bound to that form.
  FederatedProblem(const Scenario& scenario, std::shared_ptr<const LoadedData<T>> data, std::shared_ptr<const TrainingFacts> facts,
                   const DataCatalog& catalog, ThreadPool& pool, std::filesystem::path folder = {});

  [[nodiscard]] const Model<T>& model() const { return *model_; }
  // Returns false in a process without all training rows. train() is then the rows of some clients, or their form alone. In shards() a
  // client whose rows are elsewhere has none (holds_rows_of).
  [[nodiscard]] bool has_rows() const { return apart_ == nullptr; }
  // Returns the training data as clients see it, with the feature shifts of the partition.
  [[nodiscard]] const Dataset<T>& train() const { return seen_ ? *seen_ : data_->train; }
  [[nodiscard]] const std::vector<Shard>& shards() const { return split_.shards; }
  [[nodiscard]] std::size_t num_rows_of(std::size_t client) const {
    return has_rows() ? split_.shards[client].size() : apart_->split.rows[client];
  }
  // Returns how many rows each client has [n] if some rows are elsewhere; empty if shards() has them all.
  [[nodiscard]] std::span<const std::uint64_t> row_counts() const {
    return has_rows() ? std::span<const std::uint64_t>{} : std::span<const std::uint64_t>(apart_->split.rows);
  }
  [[nodiscard]] bool holds_rows_of(std::uint32_t client) const;
  // Returns the hash of what the rows of a client contain, which are here.
  [[nodiscard]] std::uint64_t row_hash(std::uint32_t client) const;
  // Returns the hash of each client's rows [n]. Computed on first use, unless the facts have them.
  [[nodiscard]] const std::vector<std::uint64_t>& row_hashes() const;
  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }
  [[nodiscard]] std::size_t P() const { return layers_.size(); }
  [[nodiscard]] const LayerTable& layers() const { return layers_; }
  [[nodiscard]] std::uint64_t split_hash() const { return split_.hash; }
  [[nodiscard]] const std::string& split_note() const { return split_.note; }  // Partitioner::note
  [[nodiscard]] const std::string& where() const { return data_->train_where; }
  // Returns the split in the form of a file. Throws ConfigError if the partition also shifts features, which the file cannot store.
  [[nodiscard]] SplitFile split_file() const;

  // Return the test set and its rows; test() is null without a test set.
  [[nodiscard]] const Dataset<T>* test() const;
  [[nodiscard]] const Shard& test_rows() const { return rows_.test; }

  // Computed on first use. Not thread-safe.
  [[nodiscard]] const ClientRows<T>& client_rows() const;
  // Returns the number of labels of a client's own rows; 0 if it has none.
  [[nodiscard]] std::uint64_t own_labels(std::size_t client) const;
  [[nodiscard]] bool own_rows_are_test_rows() const;
  [[nodiscard]] SplitSkew skew() const;

  // Returns the value of a rule over the problem's constants. Throws ConfigError naming `key`.
  [[nodiscard]] double resolve(const Expression& rule, const std::string& key);
  // Returns the numbers that rules may name: n, d, m always; l2 once resolved; L, L_max, mu and nonconvex if this or an earlier rule names
  // them. Throws ConfigError naming `key` for a model without a known smoothness.
  [[nodiscard]] const std::map<std::string, double>& names_for(const Expression& rule, const std::string& key);
  // Returns L_i of each client [n], regulariser excluded. Computed on first use.
  [[nodiscard]] const std::vector<double>& client_smoothness();
  // Returns the bound on the variance of a row's gradient among the rows of each client [n], empty if the model has none.
  [[nodiscard]] std::vector<double> gradient_variance() const;
  // Returns the facts of the training rows that a run with this scenario needs where the rows are not (server_data.hpp). `needs_optimum`
  // tells that it needs x* even if it measures no gap.
  [[nodiscard]] TrainingFacts facts_for(const Scenario& scenario, bool needs_optimum);
  // Returns the least strong convexity of any client's f_i, regulariser included; 0 if f_i is known only to be convex, or not convex.
  [[nodiscard]] double least_convexity() const;
  // x* [P] and f*, from Newton's method, or from a file whose x* is used unchanged. optimum() throws ConfigError for a model that has none,
  // and for a minimum that exists and could not be computed. A function that is only convex may have none: Minimum::is_known.
  [[nodiscard]] bool has_optimum(const OptimumSource& source) const;
  [[nodiscard]] const Minimum& optimum(const OptimumSource& source);
  // Returns the location of a file that the scenario names (DataCatalog::find_input). Throws ConfigError about `key` with the places that
  // were tried.
  [[nodiscard]] std::string find_input(const std::string& key, const std::string& path) const;
  [[nodiscard]] const std::map<std::string, double>& resolved() const { return constants_.names; }
  [[nodiscard]] std::size_t num_dropped_roles() const { return data_->num_dropped_roles; }
  [[nodiscard]] std::size_t num_dropped_rows() const { return data_->num_dropped_rows; }
  [[nodiscard]] std::size_t num_dropped_test_rows() const { return data_->num_dropped_test_rows; }

 private:
  void take_held_rows();
  [[nodiscard]] ClientRows<T> held_client_rows() const;
  void hold_out(double fraction, std::uint64_t seed);
  [[nodiscard]] std::vector<std::uint32_t> groups(std::size_t feature) const;
  [[nodiscard]] std::vector<Shard> test_shards() const;
  void split(const Scenario& scenario);
  void leave_out_unheld();
  void bind(const Scenario& scenario);
  void add_curvature();
  [[nodiscard]] std::span<const Shard> whole() const;
  [[nodiscard]] std::span<const double> whole_weights() const;
  [[nodiscard]] std::string key_of(const OptimumSource& source) const;

  ThreadPool& pool_;
  ProblemPlaces places_;
  std::string model_kind_;
  std::unique_ptr<Model<T>> model_;
  std::shared_ptr<const LoadedData<T>> data_;
  std::optional<Dataset<T>> seen_;  // set if the partition shifts features
  std::shared_ptr<GlobalFacts> facts_;
  bool weighs_rows_ = true;
  ProblemRows rows_;
  ProblemSplit split_;
  mutable std::optional<ClientRows<T>> client_rows_;
  std::vector<double> weights_;
  LayerTable layers_;
  RuleConstants constants_;
  std::shared_ptr<const TrainingFacts> apart_;  // null in a process that has the rows
};

extern template class FederatedProblem<float>;
extern template class FederatedProblem<double>;

}  // namespace fl
