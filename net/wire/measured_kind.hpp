// The quantity that a measure asks of each client, by wire::MeasureOrder::kind.
#pragma once

#include <cstdint>

namespace fl::net {

enum class MeasuredKind : std::uint32_t {
  losses,     // the sum of losses over its training rows
  correct,    // the number of labels of its own rows that its model predicts
  gradients,  // the gradient of its loss over all its training rows
  distances,  // the squared distance of that gradient from the mean
};
inline constexpr std::uint32_t kNumMeasuredKinds = 4;

}  // namespace fl::net
