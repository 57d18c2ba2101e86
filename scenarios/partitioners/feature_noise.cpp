// Rows are dealt at random and evenly; clients differ in the noise on their features.
//
//   client i of n (i = 1 .. n) sees x + z, z ~ N(0, sigma i / n) on every feature
// sigma is a variance; features are taken as the model reads them (pixels after mean and deviation). The noise of a row is drawn once, from
// the data seed and the row's number. Source: Li, Diao, Chen, He, "Federated Learning on Non-IID Data Silos: An Experimental Study", ICDE
// 2022, noise-based feature distribution skew.
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct FeatureNoiseOptions {
  double sigma = 0.1;
};
void describe(Schema& schema, FeatureNoiseOptions& options) {
  schema.field("sigma", options.sigma, "variance of the noise of the last client; client i of n has sigma i / n").at_least(0).at_most(1e6);
}

class FeatureNoise final : public Partitioner {
 public:
  explicit FeatureNoise(const FeatureNoiseOptions& options) : options_(options) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "feature_noise");
    RandomSequence random(request.seed, Purpose::partition);
    return cut(rows_shuffled(request.num_rows, random), even_sizes(request.num_rows, request.num_clients));
  }
  [[nodiscard]] std::vector<FeatureShift> feature_shifts(std::size_t num_clients) const override {
    std::vector<FeatureShift> shifts(num_clients);
    for (std::size_t i = 0; i < num_clients; ++i)
      shifts[i].noise_variance = options_.sigma * static_cast<double>(i + 1) / static_cast<double>(num_clients);
    return shifts;
  }

 private:
  FeatureNoiseOptions options_;
};

FL_REGISTER_PARTITIONER(FeatureNoise, FeatureNoiseOptions, "feature_noise",
                        "rows dealt at random; noise that grows with the client's number",
                        "Li, Diao, Chen, He, Federated Learning on Non-IID Data Silos, ICDE 2022");

}  // namespace
}  // namespace fl
