#include "scenarios/partitioners/draws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fl_core/config/key_error.hpp"

namespace fl {

void require_rows(const PartitionRequest& request, const std::string& partitioner) {
  if (request.num_clients == 0) throw key_error("partition.clients", partitioner + ": must be at least 1, is 0");
  if (request.num_rows < request.num_clients)
    throw key_error("partition.clients", partitioner + ": " + std::to_string(request.num_clients) + " clients cannot share " +
                                             std::to_string(request.num_rows) + " rows without one being empty; ask for at most " +
                                             std::to_string(request.num_rows) + " clients");
  if (request.num_rows > std::numeric_limits<std::uint32_t>::max())
    throw key_error("partition.kind",
                    partitioner + ": " + std::to_string(request.num_rows) + " rows are more than the 4294967295 that a split can number");
}

void require_min_rows(const PartitionRequest& request, const std::string& partitioner, std::int64_t min_rows) {
  if (static_cast<double>(min_rows) * static_cast<double>(request.num_clients) <= static_cast<double>(request.num_rows)) return;
  throw key_error("partition.min_rows", partitioner + ": " + std::to_string(request.num_clients) +
                                            " clients with min_rows = " + std::to_string(min_rows) + " need more than the " +
                                            std::to_string(request.num_rows) + " rows of the data");
}

void require_labels(const PartitionRequest& request, const std::string& partitioner) {
  if (request.num_classes > 0 && request.label.size() == request.num_rows) return;
  throw key_error("partition.kind", partitioner + ": the data has no classes (" + std::to_string(request.num_rows) + " rows, " +
                                        std::to_string(request.label.size()) +
                                        " labels); use contiguous, shuffled, quantity_skew, feature_noise, rotation, natural or by_group");
}

std::vector<std::size_t> even_sizes(std::size_t num_rows, std::size_t num_clients) {
  std::vector<std::size_t> sizes(num_clients, num_rows / num_clients);
  for (std::size_t i = 0; i < num_rows % num_clients; ++i) ++sizes[i];
  return sizes;
}

std::vector<std::size_t> sizes_by_shares(std::span<const double> q, std::size_t num_rows, std::size_t least) {
  const std::size_t n = q.size(), rest = num_rows - n * least;
  std::vector<std::size_t> sizes(n, least);
  std::vector<double> fraction(n);
  std::size_t dealt = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double exact = q[i] * static_cast<double>(rest);
    const auto whole = std::min(static_cast<std::size_t>(exact), rest - dealt);
    fraction[i] = exact - static_cast<double>(whole);
    sizes[i] += whole;
    dealt += whole;
  }
  std::vector<std::uint32_t> order = rows_in_file_order(n);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return fraction[a] > fraction[b]; });
  for (std::size_t i = 0; dealt < rest; i = (i + 1) % n, ++dealt) ++sizes[order[i]];
  return sizes;
}

std::vector<Shard> cut(std::span<const std::uint32_t> order, std::span<const std::size_t> sizes) {
  std::vector<Shard> shards;
  shards.reserve(sizes.size());
  std::size_t begin = 0;
  for (const std::size_t size : sizes) {
    const auto piece = order.subspan(begin, size);
    Shard& shard = shards.emplace_back(piece.begin(), piece.end());
    std::sort(shard.begin(), shard.end());
    begin += size;
  }
  return shards;
}

std::vector<std::uint32_t> rows_in_file_order(std::size_t num_rows) {
  std::vector<std::uint32_t> rows(num_rows);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

std::vector<std::uint32_t> rows_shuffled(std::size_t num_rows, RandomSequence& random) {
  std::vector<std::uint32_t> rows = rows_in_file_order(num_rows);
  random.shuffle(rows.begin(), rows.end());
  return rows;
}

std::vector<std::uint32_t> rows_by_label(const PartitionRequest& request) {
  std::vector<std::uint32_t> rows = rows_in_file_order(request.num_rows);
  std::stable_sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) { return request.label[a] < request.label[b]; });
  return rows;
}

std::vector<std::vector<std::uint32_t>> rows_of_classes(const PartitionRequest& request) {
  std::vector<std::vector<std::uint32_t>> rows(request.num_classes);
  for (std::size_t row = 0; row < request.num_rows; ++row)
    rows[static_cast<std::size_t>(request.label[row])].push_back(static_cast<std::uint32_t>(row));
  return rows;
}

// Below shape 1: ln Gamma(a) = ln Gamma(a + 1) + ln(U) / a.
std::vector<double> log_gamma_draws(std::span<const double> concentration, RandomSequence& random) {
  std::vector<double> log_weight;
  log_weight.reserve(concentration.size());
  for (const double a : concentration) {
    if (a == 0)
      log_weight.push_back(-std::numeric_limits<double>::infinity());
    else if (a < 1)
      log_weight.push_back(std::log(random.gamma(a + 1)) + std::log(1.0 - random.uniform()) / a);
    else
      log_weight.push_back(std::log(random.gamma(a)));
  }
  return log_weight;
}

std::vector<double> normalised(std::span<const double> log_weight) {
  std::vector<double> q(log_weight.size(), 0.0);
  const double largest = *std::max_element(log_weight.begin(), log_weight.end());
  if (!std::isfinite(largest)) return q;
  double sum = 0;
  for (std::size_t i = 0; i < q.size(); ++i) sum += q[i] = std::exp(log_weight[i] - largest);
  for (double& x : q) x /= sum;
  return q;
}

std::vector<double> draw_dirichlet(std::span<const double> concentration, RandomSequence& random) {
  return normalised(log_gamma_draws(concentration, random));
}

}  // namespace fl
