#include "fl_core/ops/cuda/upload_ring.hpp"

#include <algorithm>
#include <cstring>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/delay.hpp"
#include "fl_core/ops/cuda/graph.hpp"

namespace fl::cuda {

UploadRing& UploadRing::instance() {
  static auto* ring = new UploadRing;  // copies may be under way when the process ends
  return *ring;
}

void UploadRing::upload(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  // A graph would read the ring again whenever it is launched.
  if (is_recording()) throw DeviceError("memory of the host cannot be uploaded while work is recorded");
  const std::lock_guard lock(mutex_);
  if (memory_ == nullptr) memory_ = static_cast<std::byte*>(cuda::allocate_bytes(Device::pinned, kBytes));
  for (std::size_t begin = 0; begin < bytes; begin += kPiece)
    copy_piece(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin, std::min(kPiece, bytes - begin), stream);
}

void UploadRing::copy_piece(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  std::byte* place = room_for((bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memcpy(place, from, bytes);
  delay(stream);
  FL_CUDA_CHECK(cudaMemcpyAsync(to, place, bytes, cudaMemcpyHostToDevice, stream));
  cudaEvent_t read = nullptr;
  if (spare_.empty()) {
    FL_CUDA_CHECK(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
  } else {
    read = spare_.back();
    spare_.pop_back();
  }
  FL_CUDA_CHECK(cudaEventRecord(read, stream));
  const auto begin = static_cast<std::size_t>(place - memory_);
  under_way_.push_back({begin, begin + (bytes + kAlignment - 1) / kAlignment * kAlignment, read});
  next_ = under_way_.back().end;
}

// Places are given out from the beginning of the ring to its end, and then again from the beginning: the oldest copies are those that are
// in the way.
std::byte* UploadRing::room_for(std::size_t bytes) {
  if (under_way_.size() >= kMostPieces) wait_for_oldest();
  if (next_ + bytes > kBytes) {
    // The bytes between here and the end stay unused in this turn; copies that read them are older than those at the beginning.
    while (!under_way_.empty() && under_way_.front().begin >= next_) wait_for_oldest();
    next_ = 0;
  }
  while (!under_way_.empty() && under_way_.front().begin < next_ + bytes && under_way_.front().end > next_) wait_for_oldest();
  return memory_ + next_;
}

void UploadRing::wait_for_oldest() {
  FL_CUDA_CHECK(cudaEventSynchronize(under_way_.front().read));
  spare_.push_back(under_way_.front().read);
  under_way_.pop_front();
}

}  // namespace fl::cuda
