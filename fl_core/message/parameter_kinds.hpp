// The kinds of a model's parameters, and ranges of the flat parameter vector [P] whose parameters have one kind.
//
// The kind of a parameter says who has its value. How a local step moves it is another property: along its gradient, or as a running
// average of what the client's layers observe (Layer::running_rate). Every kind but `shared` allows both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

struct LayerTable;

enum class ParameterKind {
  shared,    // clients send changes, which feedbacks and operators compress, and the server's optimizer takes its step along their estimate
  averaged,  // clients send new values beside the message, raw, and the server takes their mean
  kept,      // each client keeps its own values (fl_core/round/kept_parameters.hpp)
};

// Parameters begin .. end-1 of one tensor.
struct ParameterRange {
  std::size_t begin = 0, end = 0;
  double running_rate = 0;  // Layer::running_rate
  [[nodiscard]] std::size_t size() const { return end - begin; }
};

[[nodiscard]] inline std::size_t num_entries(std::span<const ParameterRange> ranges) {
  std::size_t total = 0;
  for (const ParameterRange& range : ranges) total += range.size();
  return total;
}
// Copies the entries of x [P] in the ranges to out, one range after another. Returns the end of what it wrote.
template <class T>
T* gather_ranges(std::span<const ParameterRange> ranges, const T* x, T* out) {
  for (const ParameterRange& range : ranges) out = std::copy(x + range.begin, x + range.end, out);
  return out;
}
// Copies from the values that gather_ranges() wrote to the entries of x [P] in the ranges. Returns the end of what it read.
template <class T>
const T* scatter_ranges(std::span<const ParameterRange> ranges, const T* from, T* x) {
  for (const ParameterRange& range : ranges) {
    std::copy_n(from, range.size(), x + range.begin);
    from += range.size();
  }
  return from;
}
// Sets the entries of x [P] in the ranges to 0.
template <class T>
void clear_ranges(std::span<const ParameterRange> ranges, T* x) {
  for (const ParameterRange& range : ranges) std::fill(x + range.begin, x + range.end, T(0));
}
// Calls use(begin, end) for each run of entries in first .. last-1 that no range has. The ranges ascend.
template <class Use>
void for_each_run_outside(std::span<const ParameterRange> ranges, std::size_t first, std::size_t last, const Use& use) {
  for (const ParameterRange& range : ranges) {
    if (first < std::min(last, range.begin)) use(first, std::min(last, range.begin));
    first = std::max(first, range.end);
  }
  if (first < last) use(first, last);
}

// The ranges of a model by kind, each list ascending, tensor by tensor.
//
// A client's own values [U] are those of its parameters that are not shared: the averaged ones [A] first, then the kept ones.
struct ParameterKinds {
  std::vector<ParameterRange> averaged{}, kept{};
  std::vector<ParameterRange> unshared{};  // both, ascending: their entries of clients' vectors are 0, so feedbacks do not see them

  [[nodiscard]] std::size_t num_averaged() const { return num_entries(averaged); }
  [[nodiscard]] std::size_t num_kept() const { return num_entries(kept); }
  [[nodiscard]] std::size_t num_unshared() const { return num_entries(unshared); }

  // Copies the own values of x [P] to out [U].
  template <class T>
  void gather_own(const T* x, T* out) const {
    gather_ranges<T>(kept, x, gather_ranges<T>(averaged, x, out));
  }
  // Copies own values [U] to their entries of x [P].
  template <class T>
  void scatter_own(const T* own, T* x) const {
    scatter_ranges<T>(kept, scatter_ranges<T>(averaged, own, x), x);
  }
  // Calls use(range, position) for each range, with the position of its first entry among the own values.
  template <class Use>
  void for_each_own_range(const Use& use) const {
    std::size_t position = 0;
    for (const auto* ranges : {&averaged, &kept})
      for (const ParameterRange& range : *ranges) {
        use(range, position);
        position += range.size();
      }
  }
  // Returns whether some clients begin a round with weights that the server does not send: parameters that they keep, trained along
  // gradients. (What a layer's running average is at the beginning changes no gradient.)
  [[nodiscard]] bool keeps_weights() const {
    return std::ranges::any_of(kept, [](const ParameterRange& range) { return range.running_rate == 0; });
  }
};

// Returns the kinds of a model's parameters.
[[nodiscard]] FL_API ParameterKinds kinds_of(const LayerTable& table);
// Returns the running averages of a model, ascending.
[[nodiscard]] FL_API std::vector<ParameterRange> running_averages_of(const LayerTable& table);

}  // namespace fl
