// A client's message as kernels that sum messages read it, and the sums of groups of clients that wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fl_core/message/level_format.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "server/device_aggregation.hpp"

namespace fl::cuda {

// How a message brings its numbers: values for all positions, the levels of a linear map by their width, those of two numbers, those of
// other maps, lists of values and of levels.
enum class Form : std::uint8_t { nothing, vector, linear8, linear16, linear32, signs, two_values, levels, list, level_list };
[[nodiscard]] FL_HD constexpr bool is_linear(Form form) {
  return form == Form::linear8 || form == Form::linear16 || form == Form::linear32;
}
[[nodiscard]] FL_HD constexpr bool is_binary(Form form) { return form == Form::signs || form == Form::two_values; }

// One client's message on the device, and what it counts for: of float one sector of memory, since each block reads it.
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

// What few blocks read.
template <class T>
struct MessageDetails {
  LevelFormat format;
  LevelWidth width = LevelWidth::w8;
  const std::byte* levels = nullptr;  // of a list
  const T* excluded = nullptr;        // null: none are sent
};

// sum of weight c of a block's positions over groups of clients, joined like the carries of a binary counter. at(level) has room for the
// sum of 2^level groups: near ones in shared memory, others in memory of the block's own.
class GroupSums {
 public:
  __device__ GroupSums(double* near, std::size_t num_near, double* far, std::size_t positions)
      : near_(near), num_near_(num_near), far_(far), positions_(positions) {}

  // x is the sum of the group with this number at position i; groups before it have been added.
  __device__ void add(std::size_t i, std::size_t group, double x) const {
    std::size_t level = 0;
    for (; (group & 1) != 0; group >>= 1, ++level) x = at(level)[i] + x;
    at(level)[i] = x;
  }
  // The sum of all groups, of which x is the last.
  [[nodiscard]] __device__ double with_last(std::size_t i, std::size_t group, double x) const {
    for (std::size_t level = 0; group != 0; group >>= 1, ++level)
      if ((group & 1) != 0) x = at(level)[i] + x;
    return x;
  }
  // Levels that `groups` groups take.
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
