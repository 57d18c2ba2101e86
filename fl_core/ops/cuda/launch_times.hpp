// The time that kernels take in a run as it is (FEDBITS_CUDA_TIMES=FILE), without a profiler: a pair of events around each launch.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "fl_core/config/device.hpp"

namespace fl::cuda {

// Returns whether launches are timed. Work is then not recorded for graphs, so that each launch is measured.
[[nodiscard]] FL_API bool times_launches();

// Lives around a launch and measures it where the environment asks for that. `name` must live as long as the program. At the end of the
// program a table in CSV is written: kernel, blocks, threads, launches, milliseconds of all launches, microseconds of one.
class FL_API TimedLaunch {
 public:
  TimedLaunch(cudaStream_t stream, const char* name, unsigned blocks, unsigned threads) {
    if (times_launches()) begin(stream, name, blocks, threads);
  }
  ~TimedLaunch() {
    if (end_ != nullptr) end();
  }
  TimedLaunch(const TimedLaunch&) = delete;
  TimedLaunch& operator=(const TimedLaunch&) = delete;

 private:
  void begin(cudaStream_t stream, const char* name, unsigned blocks, unsigned threads);
  void end() noexcept;

  cudaStream_t stream_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace fl::cuda
