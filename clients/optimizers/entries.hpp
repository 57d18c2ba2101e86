// The loop over the entries of a step, for local optimizers that treat each entry by itself.
//
//   for_each_entry(exec, K, Segment{begin, end}, rule)      rule.of_client(k) returns a functor whose (j) steps entry j of client k
//
// of_client() and the functor are FL_HD. The functor has what the client's entries share in registers.
#pragma once

#include <cstddef>
#include <span>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl::FL_DEVICE_NS {

namespace detail {

// The entries from `begin` on, of one client or of all clients one after another.
template <class Functor>
struct EntriesOfClient {
  Functor functor;
  std::size_t begin;
  FL_HD void operator()(std::size_t i) const { functor(begin + i); }
};
template <class Rule>
struct EntriesOfAll {
  Rule rule;
  std::size_t begin, count;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t k = i / count;
    rule.of_client(k)(begin + i - k * count);
  }
};

}  // namespace detail

template <class Rule>
void for_each_entry(const Exec& exec, std::size_t K, const Segment& entries, const Rule& rule) {
#if defined(FL_DEVICE_IS_CUDA)
  for_each(exec, K * entries.size(), detail::EntriesOfAll<Rule>{rule, entries.begin, entries.size()});
#else
  using Functor = decltype(rule.of_client(0));
  for (std::size_t k = 0; k < K; ++k) for_each(exec, entries.size(), detail::EntriesOfClient<Functor>{rule.of_client(k), entries.begin});
#endif
}

// Returns numbers of the clients where the step's kernels read them, valid as long as the frame and `from`.
template <class U>
[[nodiscard]] const U* for_kernels(const Exec& exec, std::span<const U> from, Workspace::Frame& frame) {
#if defined(FL_DEVICE_IS_CUDA)
  return upload(exec, from, frame);
#else
  (void)exec, (void)frame;
  return from.data();
#endif
}

}  // namespace fl::FL_DEVICE_NS
