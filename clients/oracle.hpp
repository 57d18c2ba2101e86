// Gradients of clients at any point, on any sample; asked twice for one sample it takes the same rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "clients/model.hpp"
#include "fl_core/dataset.hpp"
#include "fl_core/options.hpp"
#include "fl_core/random.hpp"

namespace fl {

// How a client draws the rows of a stochastic gradient.
struct SamplingOptions {
  std::int64_t batch = 0;  // rows per gradient; 0 = all of the client's rows
  bool replacement = true;
  std::string sample_file;  // replays a published sampling: line r, column i = the local row of client i in round r
};
FL_API void describe(Schema& schema, SamplingOptions& options);

// Which rows: all, or those of a round and a local step.
struct Sample {
  bool full = false;
  std::uint32_t round = 0;
  std::uint32_t step = 0;
};

template <class T>
class FL_API GradientOracle {
 public:
  // Keeps references. Throws ConfigError for an unusable sample file (missing, a row that a client does not have, too few rounds).
  GradientOracle(const Model<T>& model, const std::vector<Shard>& shards, SamplingOptions sampling, std::uint64_t seed,
                 std::uint32_t num_rounds);

  // gradient[k] = gradient of client clients[k] at x[k] on the sample. loss [K] may be null.
  void gradient(const Exec& exec, BatchView<const T> x, std::span<const std::uint32_t> clients, const Sample& sample, BatchView<T> gradient,
                double* loss) const;

  [[nodiscard]] const Model<T>& model() const { return model_; }
  [[nodiscard]] const std::vector<Shard>& shards() const { return shards_; }
  [[nodiscard]] bool is_full() const { return sampling_.batch == 0; }

 private:
  // The rows of one client for a sample; `out` has room for `batch` entries.
  std::span<const std::uint32_t> draw(std::uint32_t client, const Sample& sample, std::uint32_t* out) const;

  const Model<T>& model_;
  const std::vector<Shard>& shards_;
  SamplingOptions sampling_;
  std::uint64_t key_;
  std::vector<std::uint32_t> replay_;  // [rounds, clients] local rows
};

extern template class GradientOracle<float>;
extern template class GradientOracle<double>;

}  // namespace fl
