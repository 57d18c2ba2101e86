// synthetic(alpha, beta): multinomial data whose clients differ in their model (alpha) and in their inputs (beta).
//
//   client i:  u_i ~ N(0, alpha)    W_i [C,D] and b_i [C] ~ N(u_i, 1)      y = argmax(W_i x + b_i)
//              B_i ~ N(0, beta)     v_ij ~ N(B_i, 1)                       x ~ N(v_i, Sigma), Sigma diagonal, Sigma_jj = j^-1.2
//   rows of client i: floor(lognormal(4, 2)) + 50
// The paper writes alpha and beta as variances, its published program uses them as standard deviations; `reading` says which.
// u_i is added to every class's score of a row alike, u_i (1 + sum_j x_j), so alpha moves no label: the clients' models differ by what
// W_i and b_i draw beside their mean, whatever alpha is. That is so in the paper's formula and in its program.
//
// iid = true: one W, b ~ N(0, 1) for all clients, and v = 0.
//
// Source: Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated Optimization in Heterogeneous Networks", MLSys 2020 (after LEAF,
// Caldas et al., 2018).
#include <algorithm>
#include <cmath>

#include "fl_core/config/registry.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/data/data_generator.hpp"
#include "fl_core/random/random.hpp"
#include "scenarios/data/memory_limit.hpp"

namespace fl {
namespace {

enum class Reading { variance, standard_deviation };

struct SyntheticOptions {
  double alpha = 1, beta = 1;
  Reading reading = Reading::variance;
  bool iid = false;
  std::int64_t clients = 30, features = 60, classes = 10;
};
void describe(Schema& schema, SyntheticOptions& options) {
  schema
      .field("alpha", options.alpha,
             "alpha of the paper's u_i; it adds the same number to every class's score, so that no label depends on it, as in the paper's "
             "program")
      .at_least(0);
  schema.field("beta", options.beta, "how much the clients' inputs differ").at_least(0);
  schema.choice("reading", options.reading, {{Reading::variance, "variance"}, {Reading::standard_deviation, "standard_deviation"}},
                "whether alpha and beta are variances (the paper) or standard deviations (its program)");
  schema.field("iid", options.iid, "one model and one input distribution for all clients");
  schema.field("clients", options.clients, "number of clients").at_least(1).at_most(1e6);
  schema.field("features", options.features, "number of features, D").at_least(1).at_most(1e6);
  schema.field("classes", options.classes, "number of classes, C").at_least(2).at_most(1e4);
}

constexpr double kLogMeanRows = 4, kLogDeviationRows = 2, kMostRows = 1e7;
constexpr std::size_t kLeastRows = 50;

struct ClientTruth {
  std::vector<double> weight;  // [C,D]
  std::vector<double> bias;    // [C]
  std::vector<double> mean;    // [D] of x
};

template <class T>
class Synthetic final : public DataGenerator<T> {
 public:
  explicit Synthetic(const SyntheticOptions& options)
      : options_(options),
        num_features_(static_cast<std::size_t>(options.features)),
        num_classes_(static_cast<std::size_t>(options.classes)),
        deviation_(num_features_) {
    for (std::size_t j = 0; j < num_features_; ++j) deviation_[j] = std::pow(static_cast<double>(j + 1), -1.2 / 2);
  }

  Dataset<T> generate(std::uint64_t seed) const override {
    Dataset<T> data = allocate(seed);
    const std::size_t n = data.client_begin.size() - 1;
    ClientTruth truth;
    if (options_.iid) truth = draw_common(seed);
    for (std::size_t i = 0; i < n; ++i) {
      RandomSequence random = stream_of(seed, i, kTruthStream);
      if (!options_.iid) truth = draw_truth(random);
      RandomSequence rows = stream_of(seed, i, kRowStream);
      for (std::size_t row = data.client_begin[i]; row < data.client_begin[i + 1]; ++row) {
        check_for_stop();
        draw_row(truth, rows, row, data);
      }
    }
    return data;
  }

 private:
  static constexpr std::uint32_t kSizeStream = 0, kTruthStream = 1, kRowStream = 2;

  // Client i's numbers do not depend on how many clients there are; stream 0 is the common one.
  static RandomSequence stream_of(std::uint64_t seed, std::size_t client, std::uint32_t kind) {
    return RandomSequence(seed, Purpose::synthetic_data, static_cast<std::uint32_t>(client + 1), kind);
  }

  Dataset<T> allocate(std::uint64_t seed) const {
    Dataset<T> data;
    data.name = "synthetic";
    data.num_features = num_features_;
    data.num_classes = num_classes_;
    data.client_begin.push_back(0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(options_.clients); ++i) {
      RandomSequence random = stream_of(seed, i, kSizeStream);
      const double drawn = std::min(std::exp(kLogMeanRows + kLogDeviationRows * random.normal()), kMostRows);
      data.client_begin.push_back(data.client_begin.back() + static_cast<std::size_t>(drawn) + kLeastRows);
    }
    data.num_rows = data.client_begin.back();
    require_memory(static_cast<double>(data.num_rows) * static_cast<double>(num_features_) * sizeof(T), "data.synthetic",
                   "use fewer clients or features");
    data.allocate_dense();
    data.label.resize(data.num_rows);
    for (std::size_t c = 0; c < num_classes_; ++c) data.class_names.push_back(std::to_string(c));
    return data;
  }

  ClientTruth draw_common(std::uint64_t seed) const {
    RandomSequence random(seed, Purpose::synthetic_data, 0);
    ClientTruth truth = draw_model(0, random);
    truth.mean.assign(num_features_, 0.0);
    return truth;
  }

  ClientTruth draw_truth(RandomSequence& random) const {
    const bool variance = options_.reading == Reading::variance;
    const double u = (variance ? std::sqrt(options_.alpha) : options_.alpha) * random.normal();
    const double shift = (variance ? std::sqrt(options_.beta) : options_.beta) * random.normal();
    ClientTruth truth = draw_model(u, random);
    for (std::size_t j = 0; j < num_features_; ++j) truth.mean.push_back(shift + random.normal());
    return truth;
  }

  ClientTruth draw_model(double mean, RandomSequence& random) const {
    ClientTruth truth;
    for (std::size_t i = 0; i < num_classes_ * num_features_; ++i) truth.weight.push_back(mean + random.normal());
    for (std::size_t c = 0; c < num_classes_; ++c) truth.bias.push_back(mean + random.normal());
    return truth;
  }

  void draw_row(const ClientTruth& truth, RandomSequence& random, std::size_t row, Dataset<T>& data) const {
    std::vector<double> x(num_features_);
    for (std::size_t j = 0; j < num_features_; ++j) {
      x[j] = truth.mean[j] + deviation_[j] * random.normal();
      data.dense_row(row)[j] = static_cast<T>(x[j]);
    }
    double best = 0;
    for (std::size_t c = 0; c < num_classes_; ++c) {
      double score = truth.bias[c];
      for (std::size_t j = 0; j < num_features_; ++j) score += truth.weight[c * num_features_ + j] * x[j];
      if (c > 0 && score <= best) continue;
      best = score;
      data.label[row] = static_cast<std::int32_t>(c);
    }
  }

  SyntheticOptions options_;
  std::size_t num_features_, num_classes_;
  std::vector<double> deviation_;  // [D] sqrt(Sigma_jj)
};

FL_REGISTER_PART(DataGenerator, Synthetic, SyntheticOptions,
                 (PartInfo{"data", "synthetic", "multinomial clients that differ in model (alpha) and inputs (beta)",
                           "Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, Federated Optimization in Heterogeneous Networks, MLSys 2020"}));

}  // namespace
}  // namespace fl
