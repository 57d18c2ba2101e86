#include "fl_core/ops/cuda/launch_times.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/diagnosis.hpp"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostPending = 2048;  // launches whose events are waited for together

// The launches of a process: those that the GPU may still work on, and the sums of the others.
class LaunchTimes {
 public:
  static LaunchTimes& instance() {
    static auto* times = [] {
      std::atexit([] { instance().write(); });  // runs before the CUDA runtime ends, which began earlier
      return new LaunchTimes;
    }();
    return *times;
  }

  [[nodiscard]] cudaEvent_t begin(cudaStream_t stream, const char* name, unsigned blocks, unsigned threads) {
    const std::lock_guard lock(mutex_);
    if (pending_.size() >= kMostPending) add_up();
    pending_.push_back({{name, blocks, threads}, event(), event()});
    FL_CUDA_CHECK(cudaEventRecord(pending_.back().begin, stream));
    return pending_.back().end;
  }

 private:
  using Key = std::tuple<std::string, unsigned, unsigned>;  // kernel, blocks, threads
  struct Pending {
    Key key;
    cudaEvent_t begin, end;
  };
  struct Sum {
    std::size_t launches = 0;
    double ms = 0;
  };

  [[nodiscard]] cudaEvent_t event() {
    cudaEvent_t made = nullptr;
    if (spare_.empty()) {
      FL_CUDA_CHECK(cudaEventCreate(&made));
    } else {
      made = spare_.back();
      spare_.pop_back();
    }
    return made;
  }

  void add_up() {
    for (const Pending& one : pending_) {
      float ms = 0;
      if (cudaEventSynchronize(one.end) == cudaSuccess && cudaEventElapsedTime(&ms, one.begin, one.end) == cudaSuccess) {
        Sum& sum = sums_[one.key];
        ++sum.launches;
        sum.ms += static_cast<double>(ms);
      }
      spare_.insert(spare_.end(), {one.begin, one.end});
    }
    pending_.clear();
    (void)cudaGetLastError();  // not a later call's
  }

  void write() {
    const std::lock_guard lock(mutex_);
    add_up();
    std::vector<std::pair<Key, Sum>> rows(sums_.begin(), sums_.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(diagnosis().times_file.c_str(), "w"), &std::fclose);
    if (!file) {
      std::fprintf(stderr, "FEDBITS_CUDA_TIMES: %s cannot be written\n", diagnosis().times_file.c_str());
      return;
    }
    std::fprintf(file.get(), "kernel,blocks,threads,launches,ms,us_each\n");
    for (const auto& [key, sum] : rows) {
      const auto& [name, blocks, threads] = key;
      std::fprintf(file.get(), "\"%s\",%u,%u,%zu,%.4f,%.2f\n", name.c_str(), blocks, threads, sum.launches, sum.ms,
                   1e3 * sum.ms / static_cast<double>(sum.launches));
    }
  }

  std::mutex mutex_;
  std::vector<Pending> pending_;
  std::vector<cudaEvent_t> spare_;
  std::map<Key, Sum> sums_;
};

}  // namespace

bool times_launches() { return !diagnosis().times_file.empty(); }

void TimedLaunch::begin(cudaStream_t stream, const char* name, unsigned blocks, unsigned threads) {
  stream_ = stream;
  end_ = LaunchTimes::instance().begin(stream, name, blocks, threads);
}

void TimedLaunch::end() noexcept { (void)cudaEventRecord(end_, stream_); }

}  // namespace fl::cuda
