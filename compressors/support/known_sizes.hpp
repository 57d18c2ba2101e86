// The sizes of sets of positions that both sides draw, kept for as long as their operator lives: messages that are being read refer to them
// (Compressor::known_levels).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fl_core/message/level_format.hpp"

namespace fl {

class KnownSizes {
 public:
  // Returns the same object for the same sizes, one for every segment. Threads may call it at the same time.
  [[nodiscard]] const KnownPositions& of(std::span<const std::uint32_t> counts) const {
    const std::lock_guard lock(mutex_);
    for (const auto& known : known_)
      if (std::ranges::equal(known->counts, counts)) return *known;
    return *known_.emplace_back(std::make_unique<KnownPositions>(KnownPositions{{counts.begin(), counts.end()}}));
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<const KnownPositions>> known_;
};

}  // namespace fl
