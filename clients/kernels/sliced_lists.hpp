// Lists of indices, a vector's width of lists side by side, and two kinds of sums over them: list l has the terms x[index].
//
// Lists of about the same length share a slice, whose step j has entry j of each of its lists. Shorter lists are filled up with an index
// whose term adds nothing. So each lane of a vector has a sum of its own, and there are no loop ends to mispredict and no sums across
// lanes. This is the format SELL-C-sigma (M. Kreutzer, G. Hager, G. Wellein, H. Fehske and A. R. Bishop, "A unified sparse matrix data
// format for efficient general sparse matrix-vector multiplication on modern processors with wide SIMD units", SIAM J. Sci. Comput. 36,
// 2014).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clients/kernels/simd.hpp"
#include "fl_core/memory/buffer.hpp"

namespace fl::kernels {

class FL_API SlicedLists {
 public:
  // Lists and indices are below this number.
  static constexpr std::size_t kMost = 1 << 16;
  // The longest list that sum_lists() takes.
  static constexpr std::size_t kShort = 4 * kLanes;

  // Makes lists of the given lengths. for_each(visit) calls visit(list, index) for every entry, in order within each list.
  template <class ForEach>
  SlicedLists(std::span<const std::uint32_t> lengths, std::size_t filler, const ForEach& for_each);

  // Computes z[l] = sum of list l for each list that is not empty, in the order of row_sums() of sparse_rows.hpp. x[filler] is zero.
  void sum_lists(const double* x, double* z) const;
  // Adds the terms of each list to acc[l], one after another. x[filler] is -0.0, the only number that changes no sum, not even -0.0.
  void add_lists(const double* x, double* acc) const;

 private:
  // Lanes without a list repeat the first list without its entries. The lanes' sums are stored last lane first, so that it prevails.
  struct Slice {
    std::uint32_t first, length;  // steps
    std::uint16_t list[kLanes];
  };
  [[nodiscard]] const std::uint16_t* steps_of(const Slice& slice) const { return index_.data() + std::size_t{slice.first} * kLanes; }
  [[gnu::always_inline]] static void scatter(VecD sum, const Slice& slice, double* to) {
    for (int l = kLanes - 1; l >= 0; --l) to[slice.list[l]] = sum[l];
  }

  std::vector<Slice> slices_;
  Buffer<std::uint16_t> index_;  // [steps,kLanes]
};

template <class ForEach>
SlicedLists::SlicedLists(std::span<const std::uint32_t> lengths, std::size_t filler, const ForEach& for_each) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t l = 0; l < lengths.size(); ++l)
    if (lengths[l] > 0) order.push_back(l);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return lengths[a] > lengths[b]; });

  std::vector<std::size_t> place(lengths.size());  // of the next entry of each list
  std::uint32_t steps = 0;
  for (std::size_t first = 0; first < order.size(); first += kLanes) {
    Slice slice{steps, lengths[order[first]], {}};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const bool is_list = first + lane < order.size();
      const std::uint32_t list = order[is_list ? first + lane : first];
      slice.list[lane] = static_cast<std::uint16_t>(list);
      if (is_list) place[list] = std::size_t{steps} * kLanes + lane;
    }
    slices_.push_back(slice);
    steps += slice.length;
  }

  index_ = Buffer<std::uint16_t>(std::size_t{steps} * kLanes);
  std::fill(index_.begin(), index_.end(), static_cast<std::uint16_t>(filler));
  for_each([&](std::uint32_t list, std::uint32_t index) {
    index_[place[list]] = static_cast<std::uint16_t>(index);
    place[list] += kLanes;
  });
}

}  // namespace fl::kernels
