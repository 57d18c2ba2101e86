// The fixed tree over clients in which messages are added, cut into pieces that may be computed apart.
//
//   leaf g:  s_g = sum_i weight_i c_i over the clients i of group g, 64 of them at most, in ascending cohort position, in double
//   sum:     leaves 2k and 2k+1 are added, then the results in the same way, as in a binary counter; at the end the incomplete rows of
//            the tree are added, the shortest first
// The tree depends on the number of clients alone, so a sum has the same bytes whoever computes its leaves, and in which order. A process
// that has the messages of some groups computes their leaves and sends them as vectors of double; the receiver joins them.
#pragma once

#include <cstddef>
#include <span>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

inline constexpr std::size_t kSumGroup = 64;  // clients summed one after another, on every device

// Returns the number of leaves of a cohort.
[[nodiscard]] constexpr std::size_t num_leaves(std::size_t clients) { return (clients + kSumGroup - 1) / kSumGroup; }

// A range of coordinates [first, last), so that threads can split a vector.
struct SumRange {
  std::size_t first = 0, last = 0;
};

// Computes leaf `group` of a cohort for some coordinates. messages: [M] of the cohort, null = nothing arrived; only those of the group are
// read. weights: [M]. sum: [L], of which the range is written.
template <class T>
void leaf(std::size_t group, std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
          SumRange range, std::span<double> sum);
// Does the same for all coordinates.
template <class T>
void leaf(std::size_t group, std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
          std::span<double> sum) {
  leaf(group, messages, weights, scope, {0, sum.size()}, sum);
}

// Joins the leaves of a cohort. Leaves come in the order of their groups; whoever receives them in another order keeps those that are
// early.
class FL_API SumTree {
 public:
  // Takes memory for sums of this length until the frame ends.
  SumTree(Workspace::Frame& frame, std::size_t leaves, std::size_t length);

  // Adds the leaf of the next group, [length]. Throws std::logic_error for another group, or a leaf of another length.
  void join(std::size_t group, std::span<const double> leaf);
  // Writes the sum of all leaves [length]; zero without a leaf. Throws std::logic_error if a leaf is missing.
  void total(std::span<double> sum) const;

 private:
  const std::size_t leaves_, length_;
  std::span<double*> partial_;  // by level: the sum of 2^level leaves, if bit `level` of joined_ is set
  std::size_t joined_ = 0;      // leaves so far
};

extern template void leaf<float>(std::size_t, std::span<const Payload<float>* const>, std::span<const double>, const Scope&, SumRange,
                                 std::span<double>);
extern template void leaf<double>(std::size_t, std::span<const Payload<double>* const>, std::span<const double>, const Scope&, SumRange,
                                  std::span<double>);

}  // namespace fl
