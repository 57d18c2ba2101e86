// The layouts of the shards of a model that is asked for gradients over whole shards again and again (shard_layout.hpp).
//
// The second request for a shard makes its layout, so that a run that measures once does not pay for it. Thread-safe after expect_shards().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "clients/kernels/shard_layout.hpp"
#include "clients/learning/expects_shards.hpp"

namespace fl::kernels {

template <class V>
class ShardLayouts : public ExpectsShards {
 public:
  // Small shards are ignored.
  void expect_shards(std::span<const Shard> shards) override {
    entries_.clear();
    for (const Shard& shard : shards)
      if (shard.size() >= kLeastRows) entries_.try_emplace(shard.data()).first->second.num_rows = shard.size();
  }
  // Returns the layout of `rows`, or null if they are not an expected shard, were not asked for before, or have none.
  [[nodiscard]] const ShardLayout<V>* layout_of(const Dataset<V>& data, std::span<const std::uint32_t> rows) const {
    if (!data.is_sparse || rows.size() < kLeastRows) return nullptr;
    const auto found = entries_.find(rows.data());
    if (found == entries_.end() || found->second.num_rows != rows.size()) return nullptr;
    const Entry& entry = found->second;
    if (!entry.was_asked.exchange(true, std::memory_order_relaxed)) return nullptr;
    std::call_once(entry.once, [&] {
      if (ShardLayout<V>::fits(data, rows)) entry.layout = std::make_unique<const ShardLayout<V>>(data, rows);
    });
    return entry.layout.get();
  }

 private:
  static constexpr std::size_t kLeastRows = 64;
  struct Entry {
    std::size_t num_rows = 0;
    mutable std::atomic<bool> was_asked = false;
    mutable std::once_flag once;
    mutable std::unique_ptr<const ShardLayout<V>> layout;
  };
  std::unordered_map<const std::uint32_t*, Entry> entries_;  // by the address of the rows
};

}  // namespace fl::kernels
