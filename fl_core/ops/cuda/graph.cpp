#include "fl_core/ops/cuda/graph.hpp"

#include "fl_core/config/error.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostEntries = 256;  // minibatches of other shapes in every round would fill memory

thread_local bool records = false;

// The work as a graph to be launched; null where something in it cannot be recorded. Only this thread is bound by the rules of recording.
cudaGraphExec_t recorded(cudaStream_t stream, const std::function<void()>& work) {
  std::unique_lock lock(recording_mutex());
  FL_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  records = true;
  bool is_whole = true;
  try {
    work();
  } catch (const DeviceError&) {
    is_whole = false;  // recorded, not done: it is done again
  } catch (...) {
    records = false;
    cudaGraph_t half = nullptr;
    if (cudaStreamEndCapture(stream, &half) == cudaSuccess && half != nullptr) (void)cudaGraphDestroy(half);
    throw;
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t launchable = nullptr;
  records = false;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  lock.unlock();
  if (ended == cudaSuccess && graph != nullptr && is_whole && cudaGraphInstantiate(&launchable, graph, 0) != cudaSuccess)
    launchable = nullptr;
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();  // not a later call's
  return launchable;
}

}  // namespace

std::recursive_mutex& recording_mutex() {
  static auto* mutex = new std::recursive_mutex;  // must outlive the last owner of memory
  return *mutex;
}

bool is_recording() { return records; }

RepeatedWork::~RepeatedWork() { forget(); }

void RepeatedWork::forget() {
  for (auto& [key, entry] : entries_)
    if (entry.graph != nullptr) (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(entry.graph));
  entries_.clear();
}

void RepeatedWork::run(const Exec& exec, std::span<const std::uint64_t> key, const std::function<void()>& work) {
  if (times_launches()) return work();
  std::vector<std::uint64_t> own(key.begin(), key.end());
  const auto found = entries_.find(own);
  if (found == entries_.end()) {
    work();
    if (entries_.size() >= kMostEntries) forget();
    entries_.emplace(std::move(own), Entry{});
    return;
  }
  Entry& entry = found->second;
  if (entry.graph == nullptr && !entry.cannot_be_recorded) {
    entry.graph = recorded(stream_of(exec), work);
    entry.cannot_be_recorded = entry.graph == nullptr;
  }
  if (entry.cannot_be_recorded) {
    work();
    return;
  }
  FL_CUDA_CHECK(cudaGraphLaunch(static_cast<cudaGraphExec_t>(entry.graph), stream_of(exec)));
  ++repeats_;
}

}  // namespace fl::cuda
