// The effect of a local step on one entry of a client's parameters, given its gradient, wherever these lie.
#pragma once

#include <cstddef>

#include "clients/learning/descent.hpp"
#include "clients/learning/model.hpp"
#include "fl_core/config/device.hpp"

namespace fl::cuda {

// v = beta v + g + decay y + mu (y - w), y -= gamma v; running averages (Layer::running_rate) move by y -= rate g alone.
template <class T>
struct DescentStep {
  const T* gamma = nullptr;  // [1], in memory, so that one recorded graph serves every step size
  T decay = T(0), momentum = T(0), proximal = T(0);
  const T* w = nullptr;     // [P], the parameters that the client received
  const T* rate = nullptr;  // [P], or null; above 0 at running averages

  DescentStep() = default;
  DescentStep(const Descent& descent, const T* step_size, const T* received, const T* running_rate)
      : gamma(step_size),
        decay(static_cast<T>(descent.weight_decay)),
        momentum(static_cast<T>(descent.momentum)),
        proximal(static_cast<T>(descent.proximal_mu)),
        w(received),
        rate(running_rate) {}

  // Returns the value that moved() receives for entry j.
  [[nodiscard]] FL_HD T received(std::size_t j) const { return proximal > T(0) ? w[j] : T(0); }
  // Returns the new y of entry j, whose gradient with the regulariser is g. v is null without momentum.
  [[nodiscard]] FL_HD T taken(std::size_t j, T g, T y, T* v) const {
    if (rate != nullptr && rate[j] > T(0)) return y - rate[j] * g;
    return moved(g, y, received(j), v);
  }
  // Returns the same as taken() for models without running averages.
  [[nodiscard]] FL_HD T moved(T g, T y, T received, T* v) const { return moved_by(*gamma, g, y, received, v); }
  // Returns the same with gamma in a register.
  [[nodiscard]] FL_HD T moved_by(T step_size, T g, T y, T received, T* v) const {
    T direction = g;
    if (decay > T(0)) direction += decay * y;
    if (proximal > T(0)) direction += proximal * (y - received);
    if (v != nullptr) direction = *v = momentum * *v + direction;
    return y - step_size * direction;
  }
};

}  // namespace fl::cuda
