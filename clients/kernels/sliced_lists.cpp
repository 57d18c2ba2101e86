#include "clients/kernels/sliced_lists.hpp"

namespace fl::kernels {

// Sums in a tree: entries j, j + 2 kLanes and then j + kLanes, j + 3 kLanes for each j < kLanes, then halves as sum() does. The last
// addition gives zeros the sign of a sum that began with zero.
void SlicedLists::sum_lists(const double* x, double* z) const {
  for (const Slice& slice : slices_) {
    const std::uint16_t* at = steps_of(slice);
    const auto entry = [&](std::uint32_t j) { return gather(x, at + j * kLanes); };
    VecD part[kLanes] = {};
    if (slice.length <= 2 * kLanes) {
#pragma GCC unroll 8
      for (std::uint32_t j = 0; j < kLanes; ++j) {
        if (j < slice.length) part[j] = entry(j);
        if (j + kLanes < slice.length) part[j] += entry(j + kLanes);
      }
    } else {
#pragma GCC unroll 8
      for (std::uint32_t j = 0; j < kLanes; ++j) {
        VecD other = {};
        part[j] = entry(j);
        if (j + kLanes < slice.length) other = entry(j + kLanes);
        if (j + 2 * kLanes < slice.length) part[j] += entry(j + 2 * kLanes);
        if (j + 3 * kLanes < slice.length) other += entry(j + 3 * kLanes);
        part[j] += other;
      }
    }
#pragma GCC unroll 4
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) part[j] += part[j + half];
    scatter(VecD{} + part[0], slice, z);
  }
}

void SlicedLists::add_lists(const double* x, double* acc) const {
  for (const Slice& slice : slices_) {
    VecD sum = gather(static_cast<const double*>(acc), slice.list);
    const std::uint16_t* at = steps_of(slice);
    for (const std::uint16_t* end = at + slice.length * kLanes; at != end; at += kLanes) sum += gather(x, at);
    scatter(sum, slice, acc);
  }
}

}  // namespace fl::kernels
