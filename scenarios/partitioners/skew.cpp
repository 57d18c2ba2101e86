#include "scenarios/partitioners/skew.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fl {
namespace {

std::vector<double> frequencies(std::span<const std::uint32_t> of_class, std::size_t num_rows) {
  std::vector<double> q;
  for (const std::uint32_t count : of_class) q.push_back(num_rows == 0 ? 0 : static_cast<double>(count) / static_cast<double>(num_rows));
  return q;
}

// p [C] of all rows together.
std::vector<double> frequencies(std::span<const ClientSkew> clients, std::size_t num_classes) {
  std::vector<std::uint32_t> of_class(num_classes, 0);
  std::size_t num_rows = 0;
  for (const ClientSkew& client : clients) {
    num_rows += client.num_rows;
    for (std::size_t c = 0; c < num_classes; ++c) of_class[c] += client.of_class[c];
  }
  return frequencies(of_class, num_rows);
}

}  // namespace

std::vector<ClientSkew> measure_clients(std::span<const Shard> shards, std::span<const std::int32_t> label, std::size_t num_classes) {
  if (label.empty()) num_classes = 0;
  std::vector<ClientSkew> clients;
  for (const Shard& shard : shards) {
    ClientSkew& client = clients.emplace_back();
    client.num_rows = shard.size();
    client.of_class.assign(num_classes, 0);
    if (num_classes > 0)
      for (const std::uint32_t row : shard) ++client.of_class[static_cast<std::size_t>(label[row])];
  }
  const std::vector<double> p = frequencies(clients, num_classes);
  for (ClientSkew& client : clients) {
    const std::vector<double> q = frequencies(client.of_class, client.num_rows);
    for (std::size_t c = 0; c < num_classes; ++c) {
      client.emd += std::abs(q[c] - p[c]);
      if (q[c] > 0) client.entropy -= q[c] * std::log2(q[c]);
    }
  }
  return clients;
}

SplitSkew summary_of(std::span<const ClientSkew> clients) {
  SplitSkew skew;
  if (clients.empty()) return skew;
  skew.min_rows = clients.front().num_rows;
  for (const ClientSkew& client : clients) {
    skew.min_rows = std::min(skew.min_rows, client.num_rows);
    skew.max_rows = std::max(skew.max_rows, client.num_rows);
    skew.mean_emd += client.emd / static_cast<double>(clients.size());
    skew.mean_entropy += client.entropy / static_cast<double>(clients.size());
  }
  return skew;
}

SplitSkew measure_skew(std::span<const Shard> shards, std::span<const std::int32_t> label, std::size_t num_classes) {
  return summary_of(measure_clients(shards, label, num_classes));
}

}  // namespace fl
