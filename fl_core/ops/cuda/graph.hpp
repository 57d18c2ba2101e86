// Work that a GPU is given again and again, recorded once (a CUDA graph): its kernels are then started together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "fl_core/memory/exec.hpp"

namespace fl::cuda {

// Held while a thread records; code that marks streams of other threads holds it too, or the mark would become part of the record.
[[nodiscard]] FL_API std::recursive_mutex& recording_mutex();
// Whether this thread records.
[[nodiscard]] FL_API bool is_recording();

// The key says everything that the kernels' arguments depend on, addresses included. Work that comes for the first time under a key is
// done as it is, so that the workspace grows to what it takes; the second time it is recorded, and from then on repeated.
class FL_API RepeatedWork {
 public:
  RepeatedWork() = default;
  ~RepeatedWork();
  RepeatedWork(const RepeatedWork&) = delete;
  RepeatedWork& operator=(const RepeatedWork&) = delete;

  // `work` only gives kernels, and copies within the GPU, to exec.stream. What cannot be recorded is done as it is.
  void run(const Exec& exec, std::span<const std::uint64_t> key, const std::function<void()>& work);

  // Returns how often run() has repeated recorded work.
  [[nodiscard]] std::uint64_t repeats() const { return repeats_; }

 private:
  struct Entry {
    void* graph = nullptr;  // cudaGraphExec_t
    bool cannot_be_recorded = false;
  };
  void forget();
  std::map<std::vector<std::uint64_t>, Entry> entries_;
  std::uint64_t repeats_ = 0;
};

}  // namespace fl::cuda
