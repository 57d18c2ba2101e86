// The inequality of a split: its label skew and its sizes, as the results record them.
//
//   EMD of client i      = sum_c |q_ic - p_c|      q_i its class frequencies, p those of all rows; in [0, 2]
//   entropy of client i  = -sum_c q_ic log2 q_ic   bits; log2 C when all classes are even
// Both are means over clients, unweighted. For 10 even classes: one class per client 1.8, two classes 1.6, identical clients 0.
// Source of the distance: Zhao, Li, Lai, Suda, Civin, Chandra, "Federated Learning with Non-IID Data", 2018.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/data/dataset.hpp"

namespace fl {

struct ClientSkew {
  std::size_t num_rows = 0;
  std::vector<std::uint32_t> of_class{};  // [C] its rows of each class; empty without classes
  double emd = 0, entropy = 0;            // bits; 0 without classes
};
// [n] every client's.
[[nodiscard]] FL_API std::vector<ClientSkew> measure_clients(std::span<const Shard> shards, std::span<const std::int32_t> label,
                                                             std::size_t num_classes);

struct SplitSkew {
  double mean_emd = 0;      // 0 without classes
  double mean_entropy = 0;  // bits; 0 without classes
  std::size_t min_rows = 0, max_rows = 0;
};

[[nodiscard]] FL_API SplitSkew summary_of(std::span<const ClientSkew> clients);
[[nodiscard]] FL_API SplitSkew measure_skew(std::span<const Shard> shards, std::span<const std::int32_t> label, std::size_t num_classes);

}  // namespace fl
