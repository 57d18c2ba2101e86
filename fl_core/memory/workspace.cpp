#include "fl_core/memory/workspace.hpp"

#include <algorithm>

#include "fl_core/memory/cuda/memory.hpp"

namespace fl {
namespace {

constexpr std::size_t kTakeAlignment = 64;                   // bytes
constexpr std::size_t kFirstChunk = std::size_t{256} << 10;  // bytes
constexpr std::size_t kShare = 8;                            // chunks grow, and are joined with room to spare, by one part in kShare

}  // namespace

std::size_t Workspace::capacity_bytes() const {
  std::size_t total = 0;
  for (const auto& chunk : chunks_) total += chunk.size();
  return total;
}

// Memory that is in use never moves: a request that does not fit opens a further chunk. Once everything has been given back the chunks
// become one, of the size that was needed at most and a little more, so that a round settles on what it needs.
void* Workspace::take_bytes(std::size_t bytes) {
  if (device_ != Device::cpu && !cuda::pools_memory()) return take_single(bytes);
  bytes = std::max((bytes + kTakeAlignment - 1) / kTakeAlignment * kTakeAlignment, kTakeAlignment);
  const bool unused = chunk_ == 0 && used_ == 0;
  if (unused && chunks_.size() > 1) {
    chunks_.clear();
    chunks_.emplace_back(std::max(peak_ + peak_ / kShare, bytes), device_);
    ++generation_;
  }
  while (chunk_ < chunks_.size() && chunks_[chunk_].size() - used_ < bytes) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    chunks_.emplace_back(std::max({bytes, capacity_bytes() / kShare, kFirstChunk}), device_);
    ++generation_;
  }
  std::byte* memory = chunks_[chunk_].data() + used_;
  used_ += bytes;
  taken_ += bytes;
  peak_ = std::max(peak_, taken_);
  return memory;
}

void* Workspace::take_single(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  single_.push_back({cuda::allocate_bytes(device_, bytes, Contents::any), bytes});
  ++generation_;
  return single_.back().memory;
}

void Workspace::free_single(std::size_t kept) noexcept {
  for (; single_.size() > kept; single_.pop_back()) cuda::free_bytes(device_, single_.back().memory, single_.back().bytes);
}

}  // namespace fl
