// The operands that matrix products read and the stores that they write to (tiled_product.cuh).
//
// A product C(i, j) = sum over e of A(i, e) B(e, j) reads operands by lines, the rows i of A or the columns j of B, and by depths e. An
// operand opens for a client as a view:
//
//   view.line(i), view.deep(e)   the position of a line and of a depth, computed separately
//   view.at(line, deep)          the number at a line and a depth
//   Operand::kRunsInward         whether neighbours in memory are neighbours in e. If so, a thread loads one depth of several lines at a
//                                time, otherwise several depths of one line
//   Operand::kTakesLong          whether these several positions are so costly to compute that a block computes them once for its threads
//
// store(k, i, j, value, before) receives C(i, j) of client k, with before = store.before(k, i, j). A thread reads `before` for many entries
// first, so that reads do not wait for each other. Store::Before is its type, and Store::kReads says whether it is large.
//
// Entries of one client's operand are counted in 32 bits.
// Entries of one client's operand are counted in 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clients/cuda/gradient_store.cuh"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

// A row-major matrix of `width` columns. Clients are `stride` apart (0 = shared).
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

// Stores into [m,n] of row length `width`, or adds to it.
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

// Stores into the gradient by weights [m,n].
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

// An operand or a store whose client 0 is client `first` of the original.
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
