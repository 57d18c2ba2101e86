// Gradients of clients at any point, on any sample. Two requests for one sample use the same rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "clients/learning/local_work.hpp"
#include "clients/learning/model.hpp"
#include "clients/learning/sample_file.hpp"
#include "clients/learning/shard_sizes.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/data/dataset.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// The way in which a client draws the rows of a stochastic gradient.
struct SamplingOptions {
  std::int64_t batch = 0;  // rows per gradient; 0 = all of the client's rows
  bool replacement = true;
  std::string sample_file;  // rows that were drawn before (clients/learning/sample_file.hpp); "" = rows are drawn
};
FL_API void describe(Schema& schema, SamplingOptions& options);

// The rows of a gradient: all, or those of a round and a local step.
struct Sample {
  bool full = false;
  std::uint32_t round = 0;
  std::uint32_t step = 0;
};

template <class T>
class FL_API GradientOracle {
 public:
  // Keeps references. `row_counts` [clients] says how many rows all clients have if some shards are in other processes and empty here.
  // Throws ConfigError for an unusable sample file (missing, a row that a client does not have, too few rounds).
  GradientOracle(const Model<T>& model, const std::vector<Shard>& shards, SamplingOptions sampling, std::uint64_t seed,
                 std::uint32_t num_rounds, std::span<const std::uint64_t> row_counts = {});

  // Computes gradient[k] = gradient of client clients[k] at x[k] on the sample. loss [K] may be null. Entries of running averages treat the
  // sample as one minibatch, for move_own(), also for a full sample.
  void gradient(const Exec& exec, BatchView<const T> x, std::span<const std::uint32_t> clients, const Sample& sample, BatchView<T> gradient,
                double* loss) const;
  // Computes the same for one client on rows that the caller has drawn (with LocalSteps).
  void gradient_on(const Exec& exec, const T* x, std::uint32_t client, const Sample& sample, std::span<const std::uint32_t> rows,
                   T* gradient) const;

  [[nodiscard]] const Model<T>& model() const { return model_; }
  [[nodiscard]] const std::vector<Shard>& shards() const { return shards_; }
  // Returns how many rows each client has, also of those whose shards are empty here.
  [[nodiscard]] const ShardSizes& sizes() const { return sizes_; }
  [[nodiscard]] bool is_full() const { return sampling_.batch == 0; }
  // Returns the model's running averages (Layer::running_rate).
  [[nodiscard]] const std::vector<ParameterRange>& running_averages() const { return running_averages_; }
  // Returns the steps or epochs of a client in a round.
  [[nodiscard]] std::int64_t amount(const LocalWork& work, std::uint32_t client, std::uint32_t round) const {
    return work.amount(seed_, client, round);
  }
  [[nodiscard]] std::size_t batch() const { return static_cast<std::size_t>(sampling_.batch); }

  // Returns the random numbers that a model draws by itself for a sample of a client: dropout, augmented images.
  [[nodiscard]] RandomStream inner_random(std::uint32_t client, const Sample& sample) const {
    return {inner_key_, client, sample.round, sample.step};
  }

  // replays_steps() and replays_rounds() return whether rows come from a file, with one line per step or per round.
  [[nodiscard]] bool replays_steps() const { return replay_ != nullptr && replay_->has_steps(); }
  [[nodiscard]] bool replays_rounds() const { return replay_ != nullptr && !replay_->has_steps(); }
  // Returns an upper bound on the rows in a sample of any client whose rows are here.
  [[nodiscard]] std::size_t most_rows() const;

  // Sets the recorder of all later samples; nullptr ends the recording.
  void record_into(SampleRecorder* recorder) { recorder_ = recorder; }
  void record(std::uint32_t client, const Sample& sample, std::span<const std::uint32_t> rows) const {
    if (recorder_ != nullptr) recorder_->add(client, sample.round, sample.step, rows);
  }

  // Returns the rows of one client's sample; `out` has room for `batch` entries.
  std::span<const std::uint32_t> draw(std::uint32_t client, const Sample& sample, std::uint32_t* out) const;
  // Writes the client's rows in the random order of an epoch; `out` has room for all of them.
  void shuffle(std::uint32_t client, std::uint32_t round, std::uint32_t epoch, std::uint32_t* out) const;

 private:
  void check_rows(std::uint32_t client, std::size_t rows) const;
  std::span<const std::uint32_t> draw_anew(std::uint32_t client, const Sample& sample, std::uint32_t* out) const;

  const Model<T>& model_;
  const std::vector<Shard>& shards_;
  ShardSizes sizes_;
  SamplingOptions sampling_;
  std::uint64_t seed_, key_, epoch_key_, inner_key_;
  std::size_t model_size_, least_rows_;
  std::vector<ParameterRange> running_averages_;
  std::unique_ptr<const SampleFile> replay_;  // null if rows are drawn
  SampleRecorder* recorder_ = nullptr;
};

// The minibatches of one client's local steps in a round. They are drawn anew for each step. If work is counted in epochs, they go through
// all rows in a random order, and the last batch of an epoch has the remaining rows.
template <class T>
class LocalSteps {
 public:
  // Scratch lasts as long as `frame`.
  LocalSteps(Workspace::Frame& frame, const GradientOracle<T>& oracle, std::uint32_t client, std::uint32_t round, const LocalWork& work);
  [[nodiscard]] std::uint32_t count() const { return count_; }
  // Returns the rows of a step. Call for steps 0, 1, ... in this order.
  [[nodiscard]] std::span<const std::uint32_t> rows(std::uint32_t step);

 private:
  const GradientOracle<T>& oracle_;
  std::uint32_t client_, round_, count_ = 0, per_epoch_ = 0;
  std::uint32_t* drawn_ = nullptr;
};

extern template class LocalSteps<float>;
extern template class LocalSteps<double>;
extern template class GradientOracle<float>;
extern template class GradientOracle<double>;

}  // namespace fl
