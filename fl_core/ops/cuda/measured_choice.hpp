// A choice between ways of doing the same work on a GPU, made by timing each of them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/memory/exec.hpp"
#include "fl_core/ops/cuda/diagnosis.hpp"

namespace fl::cuda {

// Times what a stream does between two calls, in seconds.
class FL_API StreamTimer {
 public:
  StreamTimer();
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;
  void start(const Exec& exec);
  // Waits for the GPU.
  [[nodiscard]] double stop(const Exec& exec);

 private:
  void *start_ = nullptr, *end_ = nullptr;  // cudaEvent_t
};

// Goes through the ways, each kRepeats times after a turn that does not count, and then stays with the fastest. All must give the same
// bytes: whichever is chosen changes nothing but speed. FEDBITS_CUDA_WAY chooses without a measurement (diagnosis.hpp).
class FL_API MeasuredChoice {
 public:
  explicit MeasuredChoice(std::size_t ways, std::optional<std::size_t> forced = diagnosis().way);
  [[nodiscard]] std::size_t way() const { return is_made() ? chosen_ : turn_ / (kRepeats + 1); }
  [[nodiscard]] bool is_made() const { return turn_ >= best_.size() * (kRepeats + 1); }
  // Notes the seconds that way() took for one unit of the work; ignored once the choice is made.
  void took(double seconds_per_unit);

 private:
  static constexpr std::size_t kRepeats = 2;
  std::size_t turn_ = 0, chosen_ = 0;
  std::vector<double> best_;
};

// The fastest of some ways of doing one piece of work, which all give the same bytes and may be done again and again: timed when the work
// is met for the first time in this process, remembered by its name.
FL_API std::size_t fastest_way(const Exec& exec, const std::string& work, std::span<const char* const> ways,
                               const std::function<void(std::size_t way)>& do_it);

// Returns the choices of fastest_way so far, one a line: the work, the way, and how many times as fast as the slowest way it is.
[[nodiscard]] FL_API std::vector<std::string> measured_choices();

}  // namespace fl::cuda
