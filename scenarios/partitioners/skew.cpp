#include "scenarios/partitioners/skew.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fl {
namespace {

std::vector<double> class_frequencies(std::span<const std::uint32_t> rows, std::span<const std::int32_t> label, std::size_t num_classes) {
  std::vector<double> frequency(num_classes, 0.0);
  for (const std::uint32_t row : rows) frequency[static_cast<std::size_t>(label[row])] += 1;
  for (double& f : frequency) f /= static_cast<double>(rows.size());
  return frequency;
}

}  // namespace

SplitSkew measure_skew(std::span<const Shard> shards, std::span<const std::int32_t> label, std::size_t num_classes) {
  SplitSkew skew;
  if (shards.empty()) return skew;
  std::size_t num_rows = 0;
  skew.min_rows = shards[0].size();
  for (const Shard& shard : shards) {
    skew.min_rows = std::min(skew.min_rows, shard.size());
    skew.max_rows = std::max(skew.max_rows, shard.size());
    num_rows += shard.size();
  }
  if (num_classes == 0 || label.empty() || skew.min_rows == 0) return skew;

  std::vector<std::vector<double>> q;  // [n,C]
  std::vector<double> p(num_classes, 0.0);
  for (const Shard& shard : shards) {
    q.push_back(class_frequencies(shard, label, num_classes));
    for (std::size_t c = 0; c < num_classes; ++c) p[c] += q.back()[c] * static_cast<double>(shard.size()) / static_cast<double>(num_rows);
  }
  for (const auto& q_i : q) {
    for (std::size_t c = 0; c < num_classes; ++c) {
      skew.mean_emd += std::abs(q_i[c] - p[c]);
      if (q_i[c] > 0) skew.mean_entropy -= q_i[c] * std::log2(q_i[c]);
    }
  }
  skew.mean_emd /= static_cast<double>(shards.size());
  skew.mean_entropy /= static_cast<double>(shards.size());
  return skew;
}

}  // namespace fl
