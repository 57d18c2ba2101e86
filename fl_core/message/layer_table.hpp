// The layers of a model in its flat parameter vector [P], and the segments on which a compressor works.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

// One tensor: parameters begin .. begin+rows*cols-1, row-major. A vector has cols = 1.
struct Layer {
  std::string name;
  std::size_t begin = 0;
  std::size_t rows = 0, cols = 1;
  // If positive, the parameters are statistics of batch normalisation and not weights. A local step moves them by this fraction of their
  // "gradient", independent of the step size, without momentum or penalties. Feedbacks, operators and server optimisers never see them:
  // they travel raw beside the message, and the server averages them.
  double statistic_rate = 0;
  [[nodiscard]] std::size_t size() const { return rows * cols; }
};

struct LayerTable {
  std::vector<Layer> layers;  // in order, without gaps
  [[nodiscard]] std::size_t size() const { return layers.empty() ? 0 : layers.back().begin + layers.back().size(); }
};

// The statistics in parameters begin .. end-1; rate is Layer::statistic_rate.
struct Statistic {
  std::size_t begin = 0, end = 0;
  double rate = 0;
};
// Returns the statistics of a model, ascending.
[[nodiscard]] FL_API std::vector<Statistic> statistics_of(const LayerTable& table);
[[nodiscard]] inline std::size_t num_statistics(std::span<const Statistic> statistics) {
  std::size_t total = 0;
  for (const Statistic& statistic : statistics) total += statistic.end - statistic.begin;
  return total;
}
// Copies the statistics of x [P] to out [S].
template <class T>
void gather_statistics(std::span<const Statistic> statistics, const T* x, T* out) {
  for (const Statistic& statistic : statistics) out = std::copy(x + statistic.begin, x + statistic.end, out);
}
// Copies from [S] to the statistics of x [P].
template <class T>
void scatter_statistics(std::span<const Statistic> statistics, const T* from, T* x) {
  for (const Statistic& statistic : statistics) {
    std::copy_n(from, statistic.end - statistic.begin, x + statistic.begin);
    from += statistic.end - statistic.begin;
  }
}
// Sets the statistics of x [P] to 0.
template <class T>
void clear_statistics(std::span<const Statistic> statistics, T* x) {
  for (const Statistic& statistic : statistics) std::fill(x + statistic.begin, x + statistic.end, T(0));
}
// Calls use(begin, end) for each run of weights in first .. last-1.
template <class Use>
void for_each_run_of_weights(std::span<const Statistic> statistics, std::size_t first, std::size_t last, const Use& use) {
  for (const Statistic& statistic : statistics) {
    if (first < std::min(last, statistic.begin)) use(first, std::min(last, statistic.begin));
    first = std::max(first, statistic.end);
  }
  if (first < last) use(first, last);
}

// A run of parameters that an operator treats as one vector (or one matrix).
struct Segment {
  std::size_t begin = 0, end = 0;
  std::size_t rows = 0, cols = 1;  // matrix shape if the segment is a whole tensor; otherwise size x 1
  [[nodiscard]] FL_HD std::size_t size() const { return end - begin; }
};

enum class ScopeKind { model, tensor, bucket };

// The scope of an operator: the whole parameter vector, each tensor, or buckets of fixed size. Excluded tensors travel uncompressed beside
// the message. Statistics are not part of the message: no operator reads, counts or writes them. `segments`, `excluded` and `statistics`
// together cover 0 .. P-1, each ascending.
struct Scope {
  ScopeKind kind = ScopeKind::model;
  std::vector<Segment> segments;
  std::vector<Segment> excluded;
  std::size_t P = 0;
  std::vector<Segment> statistics{};
  std::size_t clients = 0;  // the clients of the run whose messages these are; 0 outside of a run
};

// Builds the scope of a model. `bucket` applies to ScopeKind::bucket (elements, > 0; buckets do not cross excluded tensors). `exclude`
// names layers. Neither segments nor excluded tensors contain the model's statistics. Throws ConfigError for an unknown layer (with the
// nearest name) or if nothing is left to compress.
[[nodiscard]] FL_API Scope make_scope(const LayerTable& table, ScopeKind kind, std::size_t bucket, const std::vector<std::string>& exclude);

}  // namespace fl
