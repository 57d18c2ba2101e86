// The number of rows of each client. A process that holds the rows of some clients alone has empty shards for the others, but knows how
// many rows they have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/data/dataset.hpp"

namespace fl {

class ShardSizes {
 public:
  // `counts` [clients] are the numbers of rows of all clients; empty: `shards` has the rows of all clients. Keeps references.
  explicit ShardSizes(const std::vector<Shard>& shards, std::span<const std::uint64_t> counts = {}) : shards_(shards), counts_(counts) {}
  [[nodiscard]] std::size_t num_clients() const { return shards_.size(); }
  [[nodiscard]] std::size_t operator[](std::size_t client) const { return counts_.empty() ? shards_[client].size() : counts_[client]; }

 private:
  const std::vector<Shard>& shards_;
  std::span<const std::uint64_t> counts_;
};

}  // namespace fl
