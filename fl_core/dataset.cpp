#include "fl_core/dataset.hpp"

#include "fl_core/checksum.hpp"

namespace fl {

std::uint64_t hash_of(const std::vector<Shard>& shards) {
  Hash64 hash;
  hash.add_value(static_cast<std::uint64_t>(shards.size()));
  for (const Shard& shard : shards) {
    hash.add_value(static_cast<std::uint64_t>(shard.size()));
    hash.add_values(std::span<const std::uint32_t>(shard));
  }
  return hash.value();
}

}  // namespace fl
