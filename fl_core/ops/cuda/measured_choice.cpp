#include "fl_core/ops/cuda/measured_choice.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <mutex>

#include "fl_core/ops/cuda/check.cuh"

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

MeasuredChoice::MeasuredChoice(std::size_t ways, std::optional<std::size_t> forced) : best_(ways) {
  if (!forced && ways > 1) return;
  turn_ = ways * (kRepeats + 1);
  if (forced && ways > 0) chosen_ = std::min(*forced, ways - 1);
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

namespace {

struct Chosen {
  std::size_t way = 0;
  std::string text;
};
std::mutex chosen_mutex;
std::map<std::string, Chosen>& chosen() {
  static std::map<std::string, Chosen> all;
  return all;
}

// Work that is being recorded for a graph cannot be timed.
bool is_recorded(const Exec& exec) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  FL_CUDA_CHECK(cudaStreamIsCapturing(stream_of(exec), &status));
  return status != cudaStreamCaptureStatusNone;
}

std::string with_two_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", x);
  return text;
}

}  // namespace

std::size_t fastest_way(const Exec& exec, const std::string& work, std::span<const char* const> ways,
                        const std::function<void(std::size_t way)>& do_it) {
  {
    const std::lock_guard lock(chosen_mutex);
    if (const auto found = chosen().find(work); found != chosen().end()) return found->second.way;
  }
  MeasuredChoice choice(ways.size());
  if (choice.is_made()) return choice.way();
  if (is_recorded(exec)) return 0;
  StreamTimer timer;
  std::vector<double> best(ways.size(), std::numeric_limits<double>::infinity());
  while (!choice.is_made()) {
    const std::size_t way = choice.way();
    timer.start(exec);
    do_it(way);
    const double seconds = timer.stop(exec);
    best[way] = std::min(best[way], seconds);
    choice.took(seconds);
  }
  const double slowest = *std::max_element(best.begin(), best.end());
  const std::lock_guard lock(chosen_mutex);
  const auto [entry, is_new] = chosen().try_emplace(work);
  if (is_new)
    entry->second = {choice.way(), work + ": " + ways[choice.way()] + ", " + with_two_digits(slowest / best[choice.way()]) +
                                       " times as fast as the slowest"};
  return entry->second.way;
}

std::vector<std::string> measured_choices() {
  const std::lock_guard lock(chosen_mutex);
  std::vector<std::string> lines;
  for (const auto& [work, one] : chosen()) lines.push_back(one.text);
  return lines;
}

}  // namespace fl::cuda
