// Helpers of the benchmarks of neural clients: seconds, medians, the arithmetic peak of a core, and a server loop for scripts that
// interleave measurements.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/cpu/machine_vector.hpp"

namespace fl::bench {

struct Seconds {
  double wall = 0, processor = 0;  // processor time of all threads of this program: other programs do not count
};

inline Seconds seconds_of(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const auto processor = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double before = processor();
  const auto start = Clock::now();
  work();
  return {std::chrono::duration<double>(Clock::now() - start).count(), processor() - before};
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Medians of both clocks.
struct Samples {
  std::vector<double> wall, processor;
  void add(const Seconds& seconds) {
    wall.push_back(seconds.wall);
    processor.push_back(seconds.processor);
  }
};

using Vec = cpu::Vec<float>;
inline constexpr int kLanes = static_cast<int>(cpu::kVector<float>);
inline volatile float g_sink = 0;

// Fused multiply-adds in registers: 12 independent sums, each two million long. Floating-point operations per call:
inline constexpr double kPeakWork = 2.0 * 12 * kLanes * 2000000;
#if defined(__clang__)
#define FL_CONTRACTED
#else
#define FL_CONTRACTED gnu::optimize("fp-contract=fast"),
#endif
[[FL_CONTRACTED gnu::noinline]] inline void multiply_add() {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
  Vec sum[12], a = {}, b = {};
  for (int l = 0; l < kLanes; ++l) a[l] = 0.999999f, b[l] = 1e-7f;
  for (Vec& s : sum) s = b;
  for (int i = 0; i < 2000000; ++i)
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) sum[j] = sum[j] * a + b;
  float total = 0;
  for (const Vec& s : sum) total += s[0];
  g_sink = total;
}

// Thread pools that persist, so that no thread is created during a measurement.
class Pools {
 public:
  ThreadPool& of(int threads) {
    auto& pool = pools_[threads];
    if (!pool) pool = std::make_unique<ThreadPool>(threads);
    return *pool;
  }

 private:
  std::map<int, std::unique_ptr<ThreadPool>> pools_;
};

// Runs multiply-adds on every thread.
inline Seconds peak_of(ThreadPool& pool) {
  return seconds_of(
      [&] { pool.parallel_for(static_cast<std::uint32_t>(pool.num_threads()), [](std::uint32_t, const Exec&) { multiply_add(); }); });
}

// Reads lines "NAME THREADS" from standard input and answers with "wall-seconds processor-seconds operations" from measure(name, threads,
// operations).
template <class Measure>
int serve(const Measure& measure) {
  std::string name;
  int threads = 1;
  while (std::cin >> name >> threads) {
    double operations = 0;
    const Seconds seconds = measure(name, threads, operations);
    std::printf("%.9f %.9f %.0f\n", seconds.wall, seconds.processor, operations);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace fl::bench
