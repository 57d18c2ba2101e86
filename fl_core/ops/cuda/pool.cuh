// Blocks of one kind of memory of a GPU, cut from chunks, so that the driver is seldom asked: cudaMalloc and its kin take long, and
// cudaFree lets every stream wait.
//
// A block that is given back may still be used by kernels under way. It is handed out again when all streams have come past a mark that was
// set later (Streams).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace fl::cuda {

// The streams of this process, and the default one. Not for several threads at once, like the rest of this file.
class Streams {
 public:
  using Mark = std::vector<cudaEvent_t>;  // one event for each stream
  void add(cudaStream_t stream) { streams_.insert(stream); }
  void remove(cudaStream_t stream) { streams_.erase(stream); }
  // Behind all that was given to the streams so far.
  [[nodiscard]] Mark set_mark();
  // Whether all streams have come past it; a mark that was passed, or waited for, is of no further use.
  [[nodiscard]] bool has_passed(Mark& mark);
  void wait_for(Mark& mark);

 private:
  void forget(Mark& mark);
  std::set<cudaStream_t> streams_{nullptr};
  std::vector<cudaEvent_t> spare_;
};

class Pool {
 public:
#if defined(FL_CUDA_EMULATOR)  // which opens and closes all pages that are kept around every kernel
  static constexpr std::size_t kFirstChunk = std::size_t{256} << 10, kLargestChunk = std::size_t{1} << 20;  // bytes
  static constexpr std::size_t kLargestBlock = std::size_t{256} << 10;
#else
  static constexpr std::size_t kFirstChunk = std::size_t{2} << 20, kLargestChunk = std::size_t{64} << 20;  // bytes
  static constexpr std::size_t kLargestBlock = std::size_t{16} << 20;
#endif
  static constexpr std::size_t kAlignment = 256;

  explicit Pool(Streams& streams) : streams_(streams) {}

  struct MemoryBlock {
    void* memory = nullptr;  // null: there is none of that size
    bool is_zero = false;
  };
  // bytes: 1 .. kLargestBlock.
  [[nodiscard]] MemoryBlock take(std::size_t bytes);
  void give_back(void* memory);
  // Makes what is waiting for the streams free; waits for them.
  void settle();

  // The size of the chunk that a block needs, where `room` bytes are left; zeroed memory of it is then added.
  [[nodiscard]] std::size_t next_chunk(std::size_t bytes, std::size_t room) const;
  void add_chunk(void* memory, std::size_t bytes);
  // Removes an unused chunk and returns it, so that its owner can give it back to the driver; {null, 0}: every chunk is in use.
  [[nodiscard]] std::pair<void*, std::size_t> remove_unused_chunk();

 private:
  struct Span {
    std::size_t bytes;
    bool is_free, is_zero;
  };
  using Spans = std::map<std::byte*, Span>;
  struct GivenBack {
    std::vector<std::byte*> blocks;
    Streams::Mark mark;
  };
  [[nodiscard]] MemoryBlock find(std::size_t bytes);
  void collect();
  void make_free(std::byte* block);
  Spans::iterator join(Spans::iterator left, Spans::iterator right);

  Streams& streams_;
  std::map<std::byte*, std::size_t> chunks_;           // bytes of each
  Spans spans_;                                        // of all chunks, without gaps
  std::set<std::pair<std::size_t, std::byte*>> free_;  // by size
  std::vector<std::byte*> given_back_;                 // since the last mark
  std::deque<GivenBack> waiting_;                      // the oldest first
};

}  // namespace fl::cuda
