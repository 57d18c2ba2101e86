// Where the gradient by a layer's weights goes, entry by entry, from the kernel that has found it:
//
//   set    g = found
//   add    g += found, for the pieces of a minibatch after the first
//   step   y = the weight after its local step; no gradient lies in memory
//
// All give the same bits. A layer has read its weights for the way back before it stores: after a step they are others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clients/cuda/descent_step.cuh"
#include "fl_core/device.hpp"

namespace fl::cuda {

template <class T>
class GradientStore {
 public:
  // Client k's entries are at data + k * stride.
  [[nodiscard]] static GradientStore set(T* g, std::size_t stride) { return {How::set, g, stride}; }
  [[nodiscard]] static GradientStore add(T* g, std::size_t stride) { return {How::add, g, stride}; }
  // v, unless null, lies as y does.
  [[nodiscard]] static GradientStore step(const DescentStep<T>& step, T* y, T* v, std::size_t stride) {
    GradientStore store{How::step, y, stride};
    store.step_ = step;
    store.v_ = v;
    return store;
  }
  // That of the weights from `begin` on.
  [[nodiscard]] GradientStore from(std::size_t begin) const {
    GradientStore store = *this;
    store.begin_ += begin;
    return store;
  }
  // Whether a gradient that is stored twice is there once.
  [[nodiscard]] bool may_repeat() const { return how_ == How::set; }

  // Entry j of client k's.
  FL_HD void operator()(std::size_t k, std::size_t j, T found) const {
    const std::size_t entry = begin_ + j, at = k * stride_ + entry;
    if (how_ == How::step)
      data_[at] = step_.taken(entry, found, data_[at], v_ == nullptr ? nullptr : v_ + at);
    else
      data_[at] = how_ == How::add ? data_[at] + found : found;
  }

 private:
  enum class How : std::uint8_t { set, add, step };
  GradientStore(How how, T* data, std::size_t stride) : how_(how), data_(data), stride_(stride) {}
  How how_;
  T *data_, *v_ = nullptr;
  std::size_t stride_, begin_ = 0;
  DescentStep<T> step_;
};

}  // namespace fl::cuda
