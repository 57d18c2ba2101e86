// Uploads of the host's memory by way of pinned memory that is used in turns. A copy from pageable memory may read it long after the call
// has returned, or let the host wait, as the GPU and its driver see fit; pinned memory is read when the stream comes to the copy, and the
// host goes on at once.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

namespace fl::cuda {

class UploadRing {
 public:
#if defined(FL_CUDA_EMULATOR)  // small, so that tests go round it
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
#else
  static constexpr std::size_t kBytes = std::size_t{16} << 20;
#endif
  // The ring of this process, which takes its memory with the first upload.
  [[nodiscard]] static UploadRing& instance();

  // Copies to memory of the GPU in the order of the stream. `from` has been read when the call returns. Waits only where the whole ring
  // is still to be read by earlier copies. Throws DeviceError, and while this thread records work for a graph.
  void upload(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

 private:
  static constexpr std::size_t kPiece = kBytes / 4;  // of larger uploads: the next one is filled while the GPU reads
  static constexpr std::size_t kAlignment = 64;      // bytes

  static constexpr std::size_t kMostPieces = 1024;

  // Bytes of the ring that a copy under way reads, and the event behind that copy.
  struct Piece {
    std::size_t begin, end;
    cudaEvent_t read;
  };
  [[nodiscard]] std::byte* room_for(std::size_t bytes);
  void wait_for_oldest();
  void copy_piece(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

  std::mutex mutex_;
  std::byte* memory_ = nullptr;
  std::size_t next_ = 0;         // where the next piece begins
  std::deque<Piece> under_way_;  // in the order of their places
  std::vector<cudaEvent_t> spare_;
};

}  // namespace fl::cuda
