#include "fl_core/cuda/measured_choice.hpp"

#include <algorithm>
#include <limits>

#include "fl_core/cuda/check.cuh"

namespace fl::cuda {
namespace {

[[nodiscard]] cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

StreamTimer::StreamTimer() {
  for (void** event : {&start_, &end_}) {
    cudaEvent_t made = nullptr;
    FL_CUDA_CHECK(cudaEventCreate(&made));
    *event = made;
  }
}
StreamTimer::~StreamTimer() {
  (void)cudaEventDestroy(event_of(start_));
  (void)cudaEventDestroy(event_of(end_));
}

void StreamTimer::start(const Exec& exec) { FL_CUDA_CHECK(cudaEventRecord(event_of(start_), stream_of(exec))); }

double StreamTimer::stop(const Exec& exec) {
  FL_CUDA_CHECK(cudaEventRecord(event_of(end_), stream_of(exec)));
  FL_CUDA_CHECK(cudaEventSynchronize(event_of(end_)));
  float milliseconds = 0;
  FL_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event_of(start_), event_of(end_)));
  return 1e-3 * static_cast<double>(milliseconds);
}

void MeasuredChoice::took(double seconds_per_unit) {
  if (is_made()) return;
  const std::size_t way = turn_ / (kRepeats + 1), repeat = turn_ % (kRepeats + 1);
  if (repeat == 0)
    best_[way] = std::numeric_limits<double>::infinity();
  else
    best_[way] = std::min(best_[way], seconds_per_unit);
  ++turn_;
  if (is_made()) chosen_ = static_cast<std::size_t>(std::min_element(best_.begin(), best_.end()) - best_.begin());
}

}  // namespace fl::cuda
