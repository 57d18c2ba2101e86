// Models that compute the losses of rows and their gradient in one pass, for an evaluation that needs both at the same x.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/memory/exec.hpp"

namespace fl {

template <class T>
class FL_API LossWithGradient {
 public:
  virtual ~LossWithGradient() = default;
  // Computes the gradient of Model::gradient over `rows` at x [P] and returns the sum of Model::loss_sum over the same rows of the data
  // that the model is bound to. Both have the bytes of the separate functions.
  virtual double gradient_with_loss_sum(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, T* gradient) const = 0;
};

}  // namespace fl
