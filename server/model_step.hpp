// The server's step: shared parameters move along the estimate, averaged ones become the means of the values that arrived.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/pieces.hpp"
#include "fl_core/round/run_settings.hpp"
#include "fl_core/state/archive.hpp"
#include "server/server_optimizer.hpp"

namespace fl {

template <class T>
class ModelStep {
 public:
  // `model` is x [P].
  ModelStep(ServerOptimizer<T>& optimizer, const RunSettings& run, ThreadPool& pool, std::span<T> model)
      : optimizer_(optimizer), run_(run), pool_(pool), model_(model) {
    optimizer_.open(model.size());
  }

  [[nodiscard]] std::span<T> model() const { return model_; }
  // Returns the factor that the optimizer applies to estimates in addition to its learning rate: gamma if they are gradients, else 1.
  [[nodiscard]] double factor(double step_size) const { return run_.unit == Unit::gradient ? step_size : 1.0; }
  // Returns s of the step w <- w - s estimate; 0 if the optimizer takes another step.
  [[nodiscard]] double plain_step(double step_size) const { return optimizer_.plain_rate().value_or(0) * factor(step_size); }

  // Steps along estimate [P]. `averaged` [A] are means of averaged parameters; empty if no message arrived, or if there are none.
  void step(std::uint32_t round, double step_size, std::span<const double> estimate, std::span<const double> averaged) {
    for_each_piece(pool_, model_.size(), [&](std::size_t first, std::size_t last) {
      for_each_run_outside(run_.kinds.unshared, first, last, [&](std::size_t begin, std::size_t end) {
        optimizer_.step(round, factor(step_size), begin, estimate.subspan(begin, end - begin), model_.subspan(begin, end - begin));
      });
    });
    if (!averaged.empty()) set(run_.kinds.averaged, averaged);
  }
  // Sets the model's entries in the ranges.
  void set(std::span<const ParameterRange> ranges, std::span<const double> values) {
    std::vector<T> rounded(values.size());
    std::ranges::transform(values, rounded.begin(), [](double value) { return static_cast<T>(value); });
    scatter_ranges(ranges, rounded.data(), model_.data());
  }

  void persist(Archive& archive) {
    archive.section("model");
    archive.array(model_);
    archive.section("optimizer");
    optimizer_.persist(archive);
    optimizer_.open(model_.size());  // a file may be of a run that had not stepped
  }

 private:
  ServerOptimizer<T>& optimizer_;
  const RunSettings& run_;
  ThreadPool& pool_;
  std::span<T> model_;
};

}  // namespace fl
