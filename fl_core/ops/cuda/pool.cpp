#include "fl_core/ops/cuda/pool.cuh"

#include <algorithm>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/graph.hpp"

// The address sanitizer sees blocks as if each were an allocation of its own.
#if defined(__SANITIZE_ADDRESS__)
#define FL_POOL_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FL_POOL_POISONS 1
#endif
#endif
#if defined(FL_POOL_POISONS)
#include <sanitizer/asan_interface.h>
#endif

namespace fl::cuda {
namespace {

constexpr std::size_t kMostMarks = 8;    // what is given back meanwhile waits for one of them to be passed
constexpr std::size_t kShareOfRoom = 8;  // a chunk takes at most one part in kShareOfRoom of the free memory, unless a block needs more

#if defined(FL_POOL_POISONS)
constexpr std::size_t kBetweenBlocks = 16;  // bytes that belong to nobody
void open(void* memory, std::size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(memory, bytes); }
void close(void* memory, std::size_t bytes) { ASAN_POISON_MEMORY_REGION(memory, bytes); }
#else
constexpr std::size_t kBetweenBlocks = 0;
void open(void* /*memory*/, std::size_t /*bytes*/) {}
void close(void* /*memory*/, std::size_t /*bytes*/) {}
#endif

std::size_t rounded(std::size_t bytes) { return (bytes + kBetweenBlocks + Pool::kAlignment - 1) / Pool::kAlignment * Pool::kAlignment; }

}  // namespace

Streams::Mark Streams::set_mark() {
  Mark mark;
  const std::lock_guard lock(recording_mutex());
  for (cudaStream_t stream : streams_) {
    cudaEvent_t event = nullptr;
    if (spare_.empty()) {
      FL_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    } else {
      event = spare_.back();
      spare_.pop_back();
    }
    mark.push_back(event);
    FL_CUDA_CHECK(cudaEventRecord(event, stream));
  }
  return mark;
}

bool Streams::has_passed(Mark& mark) {
  for (cudaEvent_t event : mark) {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();  // not a later call's
      return false;
    }
    FL_CUDA_CHECK(status);
  }
  forget(mark);
  return true;
}

void Streams::wait_for(Mark& mark) {
  for (cudaEvent_t event : mark) FL_CUDA_CHECK(cudaEventSynchronize(event));
  forget(mark);
}

void Streams::forget(Mark& mark) {
  spare_.insert(spare_.end(), mark.begin(), mark.end());
  mark.clear();
}

Pool::MemoryBlock Pool::take(std::size_t bytes) {
  if (const MemoryBlock found = find(bytes); found.memory != nullptr) return found;
  collect();
  return find(bytes);
}

// The smallest that is large enough; what is left of it stays free.
Pool::MemoryBlock Pool::find(std::size_t bytes) {
  const std::size_t need = rounded(bytes);
  const auto found = free_.lower_bound({need, nullptr});
  if (found == free_.end()) return {};
  std::byte* memory = found->second;
  free_.erase(found);
  Span& span = spans_.at(memory);
  if (span.bytes > need) {
    spans_[memory + need] = {span.bytes - need, true, span.is_zero};
    free_.insert({span.bytes - need, memory + need});
    span.bytes = need;
  }
  span.is_free = false;
  open(memory, bytes);
  return {memory, span.is_zero};
}

void Pool::give_back(void* memory) {
  auto* block = static_cast<std::byte*>(memory);
  close(block, spans_.at(block).bytes);
  given_back_.push_back(block);
}

// Frees what no stream can use any more, and sets a mark behind what was given back lately.
void Pool::collect() {
  if (!given_back_.empty() && waiting_.size() < kMostMarks) {
    Streams::Mark mark = streams_.set_mark();
    waiting_.push_back({std::move(given_back_), std::move(mark)});
    given_back_.clear();
  }
  while (!waiting_.empty() && streams_.has_passed(waiting_.front().mark)) {
    for (std::byte* block : waiting_.front().blocks) make_free(block);
    waiting_.pop_front();
  }
}

void Pool::settle() {
  collect();
  while (!waiting_.empty() || !given_back_.empty()) {
    if (!waiting_.empty()) streams_.wait_for(waiting_.front().mark);
    collect();
  }
}

void Pool::make_free(std::byte* block) {
  auto at = spans_.find(block);
  at->second.is_free = true;
  at->second.is_zero = false;
  if (const auto next = std::next(at); next != spans_.end() && next->second.is_free && !chunks_.contains(next->first)) {
    free_.erase({next->second.bytes, next->first});
    at = join(at, next);
  }
  if (!chunks_.contains(at->first)) {
    const auto before = std::prev(at);
    if (before->second.is_free) {
      free_.erase({before->second.bytes, before->first});
      at = join(before, at);
    }
  }
  free_.insert({at->second.bytes, at->first});
}

Pool::Spans::iterator Pool::join(Spans::iterator left, Spans::iterator right) {
  left->second.bytes += right->second.bytes;
  left->second.is_zero = false;
  spans_.erase(right);
  return left;
}

// As much as there is already, so that a process with little to keep takes little, and a small part of what is left where that is short.
std::size_t Pool::next_chunk(std::size_t bytes, std::size_t room) const {
  std::size_t held = 0;
  for (const auto& [_, size] : chunks_) held += size;
  const std::size_t wanted = std::min(std::clamp(held, kFirstChunk, kLargestChunk), room / kShareOfRoom / kAlignment * kAlignment);
  return std::max(rounded(bytes), wanted);
}

void Pool::add_chunk(void* memory, std::size_t bytes) {
  auto* begin = static_cast<std::byte*>(memory);
  close(begin, bytes);
  chunks_[begin] = bytes;
  spans_[begin] = {bytes, true, true};
  free_.insert({bytes, begin});
}

std::pair<void*, std::size_t> Pool::remove_unused_chunk() {
  for (const auto& [begin, bytes] : chunks_) {
    const auto span = spans_.find(begin);
    if (!span->second.is_free || span->second.bytes != bytes) continue;
    const std::pair<void*, std::size_t> chunk{begin, bytes};
    open(begin, bytes);
    free_.erase({bytes, begin});
    spans_.erase(span);
    chunks_.erase(begin);
    return chunk;
  }
  return {nullptr, 0};
}

}  // namespace fl::cuda
