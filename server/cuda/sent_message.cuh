// A client's message in the form that summing kernels read, and partial sums of groups of clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fl_core/message/level_format.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "server/device_aggregation.hpp"

namespace fl::cuda {

// The numbers of a message: values for all positions, levels of a linear map by their width, levels with two numbers, levels of other
// maps, lists of values and lists of levels.
enum class Form : std::uint8_t { nothing, vector, linear8, linear16, linear32, signs, two_values, levels, list, level_list };
[[nodiscard]] FL_HD constexpr bool is_linear(Form form) {
  return form == Form::linear8 || form == Form::linear16 || form == Form::linear32;
}
[[nodiscard]] FL_HD constexpr bool is_binary(Form form) { return form == Form::signs || form == Form::two_values; }

// One client's message on the device, with its weight. For float it takes one memory sector, because each block reads it.
template <class T>
struct alignas(32) SentMessage {
  const void* numbers = nullptr;  // values, levels, or positions of a list
  const T* second = nullptr;      // values of a list; scales of levels, or null
  double weight = 0;
  Form form = Form::nothing;
  union {
    std::uint32_t num_sent = 0;  // of lists
    T unit;                      // of linear levels
  };
};

// Details that few blocks read.
template <class T>
struct MessageDetails {
  LevelFormat format;
  LevelWidth width = LevelWidth::w8;
  const std::byte* levels = nullptr;  // of a list
  const T* excluded = nullptr;        // null: not sent
};

// Sums of weight c of a block's positions over groups of clients, joined like the carries of a binary counter. at(level) stores the sum of
// 2^level groups: near ones in shared memory, others in global memory that belongs to the block.
class GroupSums {
 public:
  __device__ GroupSums(double* near, std::size_t num_near, double* far, std::size_t positions)
      : near_(near), num_near_(num_near), far_(far), positions_(positions) {}

  // Adds the sum x of group number `group` at position i. The groups before it must have been added.
  __device__ void add(std::size_t i, std::size_t group, double x) const {
    std::size_t level = 0;
    for (; (group & 1) != 0; group >>= 1, ++level) x = at(level)[i] + x;
    at(level)[i] = x;
  }
  // Returns the sum of all groups; x is the last group.
  [[nodiscard]] __device__ double with_last(std::size_t i, std::size_t group, double x) const {
    for (std::size_t level = 0; group != 0; group >>= 1, ++level)
      if ((group & 1) != 0) x = at(level)[i] + x;
    return x;
  }
  // Returns the number of levels for `groups` groups.
  [[nodiscard]] static std::size_t levels(std::size_t groups) {
    std::size_t levels = 0;
    while (groups > 1 && (groups - 1) >> levels != 0) ++levels;
    return levels;
  }

 private:
  [[nodiscard]] __device__ double* at(std::size_t level) const {
    return level < num_near_ ? near_ + level * positions_ : far_ + (level - num_near_) * positions_;
  }
  double* near_;
  std::size_t num_near_;
  double* far_;
  std::size_t positions_;
};

}  // namespace fl::cuda
