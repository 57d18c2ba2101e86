// What products of matrices read and where they write (tiled_product.cuh).
//
// A product C(i, j) = sum over e of A(i, e) B(e, j) reads operands by lines, the rows i of A or the columns j of B, and depths e. An
// operand opens for a client as a view:
//
//   view.line(i), view.deep(e)   where a line and a depth lie, found apart
//   view.at(line, deep)          the number where they meet
//   Operand::kRunsInward         whether neighbours in memory are neighbours in e: a thread then has one depth of several lines at a time,
//                                and of other operands several depths of one line
//   Operand::kTakesLong          whether those several are so long to find that a block finds them once for all of its threads
//
// store(k, i, j, value, before) is given C(i, j) of client k with before = store.before(k, i, j), which a thread reads for many entries
// first: no read waits for another. Store::Before is what that is, Store::kReads whether there is much of it.
//
// Entries of one client's operand are counted in 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clients/cuda/gradient_store.cuh"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

// Row-major of `width` columns, each client's `stride` after the one before (0 = shared).
template <class T, bool kInward>
struct MatrixView {
  const T* data;
  std::uint32_t width;
  [[nodiscard]] __device__ std::uint32_t line(std::uint32_t i) const { return kInward ? i * width : i; }
  [[nodiscard]] __device__ std::uint32_t deep(std::uint32_t e) const { return kInward ? e : e * width; }
  [[nodiscard]] __device__ T at(std::uint32_t line, std::uint32_t deep) const { return data[line + deep]; }
};
template <class T, bool kInward>
struct Matrix {
  static constexpr bool kRunsInward = kInward, kTakesLong = false;
  const T* data;
  std::size_t stride, width;
  [[nodiscard]] __device__ MatrixView<T, kInward> open(std::size_t k) const {
    return {data + k * stride, static_cast<std::uint32_t>(width)};
  }
};
// A (i, e) from [m,d] or, transposed, [d,m]; B (e, j) from [d,n] or, transposed, [n,d].
template <class T, bool kTransposed = false>
using LeftMatrix = Matrix<T, !kTransposed>;
template <class T, bool kTransposed = false>
using RightMatrix = Matrix<T, kTransposed>;

// Into [m,n] of row length `width`, or added to it.
template <class T>
struct StoreMatrix {
  static constexpr bool kReads = false;
  T* data;
  std::size_t stride, width;
  bool adds = false;
  const T* bias = nullptr;  // [n] of client k at bias + k * bias_stride, added to every row
  std::size_t bias_stride = 0;
  struct Before {
    T data, bias;
  };
  [[nodiscard]] __device__ Before before(std::size_t k, std::uint32_t i, std::uint32_t j) const {
    return {adds ? data[k * stride + i * width + j] : T(0), bias != nullptr ? bias[k * bias_stride + j] : T(0)};
  }
  __device__ void operator()(std::size_t k, std::uint32_t i, std::uint32_t j, T value, const Before& before) const {
    if (bias != nullptr) value += before.bias;
    data[k * stride + i * width + j] = adds ? before.data + value : value;
  }
};

// Into the gradient by weights [m,n].
template <class T>
struct StoreGradient {
  static constexpr bool kReads = true;
  GradientStore<T> gradient;
  std::size_t width;
  using Before = typename GradientStore<T>::Before;
  [[nodiscard]] __device__ Before before(std::size_t k, std::uint32_t i, std::uint32_t j) const {
    return gradient.before(k, i * width + j);
  }
  __device__ void operator()(std::size_t k, std::uint32_t i, std::uint32_t j, T value, const Before& before) const {
    gradient(k, i * width + j, value, before);
  }
};

// An operand or a store of clients `first` and on.
template <class Operand>
struct FromClient {
  static constexpr bool kRunsInward = Operand::kRunsInward, kTakesLong = Operand::kTakesLong;
  std::size_t first;
  Operand of;
  [[nodiscard]] __device__ auto open(std::size_t k) const { return of.open(first + k); }
};
template <class Store>
struct StoreFromClient {
  static constexpr bool kReads = Store::kReads;
  std::size_t first;
  Store of;
  using Before = typename Store::Before;
  [[nodiscard]] __device__ Before before(std::size_t k, std::uint32_t i, std::uint32_t j) const { return of.before(first + k, i, j); }
  template <class T>
  __device__ void operator()(std::size_t k, std::uint32_t i, std::uint32_t j, T value, const Before& before) const {
    of(first + k, i, j, value, before);
  }
};

}  // namespace fl::cuda
