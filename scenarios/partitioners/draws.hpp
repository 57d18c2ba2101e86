// Functions that partitioners share: even cuts, checks of the request, and Dirichlet draws.
//
// m rows over n clients that do not divide: the first m mod n clients get one row more. Shards list their rows in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/data/partitioner.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// Throws ConfigError unless 1 <= clients <= rows, and rows can be numbered in 32 bits.
FL_API void require_rows(const PartitionRequest& request, const std::string& partitioner);
// Throws ConfigError unless n clients can have min_rows rows each.
FL_API void require_min_rows(const PartitionRequest& request, const std::string& partitioner, std::int64_t min_rows);
// Throws ConfigError unless the rows have classes.
FL_API void require_labels(const PartitionRequest& request, const std::string& partitioner);

// Sizes [n] of an even cut.
[[nodiscard]] FL_API std::vector<std::size_t> even_sizes(std::size_t num_rows, std::size_t num_clients);
// Sizes [n] that sum to num_rows: `least` rows each, and the rest r by the shares q [n] (summing to 1) as floor(q_i r); what rounding
// leaves goes one by one to the largest fractions, ties to the lower client. num_rows >= n * least.
[[nodiscard]] FL_API std::vector<std::size_t> sizes_by_shares(std::span<const double> q, std::size_t num_rows, std::size_t least);
// Cuts `order` into consecutive pieces of these sizes; each piece sorted.
[[nodiscard]] FL_API std::vector<Shard> cut(std::span<const std::uint32_t> order, std::span<const std::size_t> sizes);

[[nodiscard]] FL_API std::vector<std::uint32_t> rows_in_file_order(std::size_t num_rows);
[[nodiscard]] FL_API std::vector<std::uint32_t> rows_shuffled(std::size_t num_rows, RandomSequence& random);
// Sorted by class, rows of one class in file order.
[[nodiscard]] FL_API std::vector<std::uint32_t> rows_by_label(const PartitionRequest& request);
// [C] the rows of each class in file order.
[[nodiscard]] FL_API std::vector<std::vector<std::uint32_t>> rows_of_classes(const PartitionRequest& request);

// ln of unnormalised Dirichlet components: ln Gamma(a_j) draws, which stay finite where the draws themselves underflow (a_j < 0.01).
// A concentration of 0 gives minus infinity: that component is never drawn.
[[nodiscard]] FL_API std::vector<double> log_gamma_draws(std::span<const double> concentration, RandomSequence& random);
// exp(log_weight) divided by its sum; all zero when every weight is.
[[nodiscard]] FL_API std::vector<double> normalised(std::span<const double> log_weight);
// q ~ Dir(concentration).
[[nodiscard]] FL_API std::vector<double> draw_dirichlet(std::span<const double> concentration, RandomSequence& random);

}  // namespace fl
