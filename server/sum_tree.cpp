#include "server/sum_tree.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include "fl_core/message/payload_ops.hpp"

namespace fl {

namespace {

// Computes sum = left + right, which may be one of them.
void add_sums(const double* left, const double* right, std::size_t length, double* sum) {
  for (std::size_t j = 0; j < length; ++j) sum[j] = left[j] + right[j];
}

}  // namespace

template <class T>
void leaf(std::size_t group, std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
          SumRange range, std::span<double> sum) {
  const std::size_t from = group * kSumGroup, count = std::min(messages.size() - from, kSumGroup);
  std::fill(sum.begin() + static_cast<std::ptrdiff_t>(range.first), sum.begin() + static_cast<std::ptrdiff_t>(range.last), 0.0);
  accumulate(messages.subspan(from, count), scope, weights.subspan(from, count), range.first, range.last, sum.data());
}

SumTree::SumTree(Workspace::Frame& frame, std::size_t leaves, std::size_t length) : leaves_(leaves), length_(length) {
  const auto levels = static_cast<std::size_t>(std::bit_width(leaves));
  partial_ = {frame.take<double*>(levels), levels};
  for (double*& partial : partial_) partial = frame.take<double>(length);
}

void SumTree::join(std::size_t group, std::span<const double> leaf) {
  if (group != joined_ || group >= leaves_ || leaf.size() != length_)
    throw std::logic_error("leaf " + std::to_string(group) + " of " + std::to_string(leaf.size()) + " numbers joins a sum that has " +
                           std::to_string(joined_) + " of " + std::to_string(leaves_) + " leaves of " + std::to_string(length_));
  const double* right = leaf.data();
  std::size_t level = 0;
  for (; (joined_ >> level & 1) != 0; ++level) {
    add_sums(partial_[level], right, length_, partial_[level]);
    right = partial_[level];
  }
  if (level == 0)
    std::copy_n(right, length_, partial_[0]);
  else
    std::swap(partial_[level - 1], partial_[level]);
  ++joined_;
}

void SumTree::total(std::span<double> sum) const {
  if (joined_ != leaves_ || sum.size() != length_)
    throw std::logic_error("a sum has " + std::to_string(joined_) + " of " + std::to_string(leaves_) + " leaves");
  if (leaves_ == 0) std::ranges::fill(sum, 0.0);
  bool is_first = true;
  for (std::size_t level = 0; level < partial_.size(); ++level) {
    if ((leaves_ >> level & 1) == 0) continue;
    if (is_first)
      std::copy_n(partial_[level], length_, sum.data());
    else
      add_sums(partial_[level], sum.data(), length_, sum.data());
    is_first = false;
  }
}

template void leaf<float>(std::size_t, std::span<const Payload<float>* const>, std::span<const double>, const Scope&, SumRange,
                          std::span<double>);
template void leaf<double>(std::size_t, std::span<const Payload<double>* const>, std::span<const double>, const Scope&, SumRange,
                           std::span<double>);

}  // namespace fl
