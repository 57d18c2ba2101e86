// Stores the gradient by a layer's weights, entry by entry, from the kernel that computes it:
//
//   set    g = found
//   add    g += found, for the pieces of a minibatch after the first
//   step   y = the weight after its local step; no gradient lies in memory
//
// All three give the same bits. A layer reads its weights for the backward pass before it stores, because a step changes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clients/cuda/descent_step.cuh"
#include "fl_core/config/device.hpp"

namespace fl::cuda {

template <class T>
class GradientStore {
  enum class How : std::uint8_t { set, add, step };

 public:
  // Client k's entries are at data + k * stride.
  [[nodiscard]] static GradientStore set(T* g, std::size_t stride) { return {How::set, g, stride}; }
  [[nodiscard]] static GradientStore add(T* g, std::size_t stride) { return {How::add, g, stride}; }
  // Returns a store that takes a local step, for models without running averages. v has the layout of y, or is null.
  [[nodiscard]] static GradientStore step(const DescentStep<T>& step, T* y, T* v, std::size_t stride) {
    GradientStore store{How::step, y, stride};
    store.step_ = step;
    store.v_ = v;
    return store;
  }
  // Returns the store of the weights from `begin` on.
  [[nodiscard]] GradientStore from(std::size_t begin) const {
    GradientStore store = *this;
    store.begin_ += begin;
    return store;
  }
  // Returns whether storing an entry twice has the same effect as storing it once.
  [[nodiscard]] bool may_repeat() const { return how_ == How::set; }

  // The values in memory at the destination of entry j. Threads with many entries read all of them before they store the first, so that
  // reads do not wait for each other.
  struct Before {
    T data, v, received;
  };
  // The store of one client, with what its entries share in registers.
  class Client {
   public:
    [[nodiscard]] FL_HD Before before(std::size_t j) const {
      if (how_ == How::set) return {T(0), T(0), T(0)};
      if (how_ == How::add) return {data_[j], T(0), T(0)};
      return {data_[j], v_ == nullptr ? T(0) : v_[j], step_.received(begin_ + j)};
    }
    FL_HD void operator()(std::size_t j, T found, const Before& before) const {
      if (how_ != How::step) {
        data_[j] = how_ == How::add ? before.data + found : found;
      } else if (v_ == nullptr) {
        data_[j] = step_.moved_by(gamma_, found, before.data, before.received, nullptr);
      } else {
        T v = before.v;
        data_[j] = step_.moved_by(gamma_, found, before.data, before.received, &v);
        v_[j] = v;
      }
    }

   private:
    friend class GradientStore;
    FL_HD Client(const GradientStore& all, std::size_t k)
        : how_(all.how_),
          data_(all.data_ + k * all.stride_ + all.begin_),
          v_(all.v_ == nullptr ? nullptr : all.v_ + k * all.stride_ + all.begin_),
          begin_(all.begin_),
          gamma_(all.how_ == How::step ? *all.step_.gamma : T(0)),
          step_(all.step_) {}
    How how_;
    T *data_, *v_;
    std::size_t begin_;
    T gamma_;
    DescentStep<T> step_;
  };
  [[nodiscard]] FL_HD Client open(std::size_t k) const { return Client(*this, k); }
  FL_HD void operator()(std::size_t k, std::size_t j, T found) const {
    const Client client = open(k);
    client(j, found, client.before(j));
  }

 private:
  GradientStore(How how, T* data, std::size_t stride) : how_(how), data_(data), stride_(stride) {}
  How how_;
  T *data_, *v_ = nullptr;
  std::size_t stride_, begin_ = 0;
  DescentStep<T> step_;
};

}  // namespace fl::cuda
