// The operands that matrix products read and the stores that they write to (tiled_product.cuh).
//
// A product C(i, j) = sum over e of A(i, e) B(e, j) reads operands by lines, the rows i of A or the columns j of B, and by depths e. An
// operand opens for a client as a view:
//
//   view.line(i), view.deep(e)   the position of a line and of a depth, computed separately
//   view.find(line, deep)        where the number at a line and a depth lies, or that it is zero and lies nowhere
//   Operand::kRunsInward         whether neighbours in memory are neighbours in e. If so, neighbouring threads copy neighbouring depths,
//                                otherwise neighbouring lines
//   Operand::kTakesLong          whether these several positions are so costly to compute that a block computes them once for its threads
//
// store.open(k) is the store of client k, Store::Client. It receives C(i, j) by store(i, j, value, before) with before = store.before(i,
// j), of the type Store::Before. A thread reads `before` for many entries first, so that reads do not wait for each other.
//
// Entries of one client's operand are counted in 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "clients/cuda/gradient_store.cuh"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

// Where a number of an operand lies. One that is not there is zero, and `at` is any address.
template <class T>
struct Located {
  const T* at;
  bool is_there = true;
};
template <class View, class Line, class Deep>
[[nodiscard]] __device__ auto number_at(const View& view, const Line& line, const Deep& deep) {
  const auto found = view.find(line, deep);
  return found.is_there ? *found.at : decltype(*found.at + 0)(0);
}

// A row-major matrix of `width` columns. Clients are `stride` apart (0 = shared).
template <class T, bool kInward>
struct MatrixView {
  const T* data;
  std::uint32_t width;
  [[nodiscard]] __device__ std::uint32_t line(std::uint32_t i) const { return kInward ? i * width : i; }
  [[nodiscard]] __device__ std::uint32_t deep(std::uint32_t e) const { return kInward ? e : e * width; }
  [[nodiscard]] __device__ Located<T> find(std::uint32_t line, std::uint32_t deep) const { return {data + (line + deep)}; }
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
  T* data;
  std::size_t stride, width;
  bool adds = false;
  const T* bias = nullptr;  // [n] of client k at bias + k * bias_stride, added to every row
  std::size_t bias_stride = 0;
  struct Before {
    T data, bias;
  };
  struct Client {
    T* data;
    const T* bias;
    std::uint32_t width;
    bool adds;
    [[nodiscard]] __device__ Before before(std::uint32_t i, std::uint32_t j) const {
      return {adds ? data[i * width + j] : T(0), bias != nullptr ? bias[j] : T(0)};
    }
    __device__ void operator()(std::uint32_t i, std::uint32_t j, T value, const Before& before) const {
      if (bias != nullptr) value += before.bias;
      data[i * width + j] = adds ? before.data + value : value;
    }
  };
  [[nodiscard]] __device__ Client open(std::size_t k) const {
    return {data + k * stride, bias != nullptr ? bias + k * bias_stride : nullptr, static_cast<std::uint32_t>(width), adds};
  }
};

// Stores into the gradient by weights [m,n].
template <class T>
struct StoreGradient {
  GradientStore<T> gradient;
  std::size_t width;
  using Before = typename GradientStore<T>::Before;
  struct Client {
    typename GradientStore<T>::Client gradient;
    std::uint32_t width;
    [[nodiscard]] __device__ Before before(std::uint32_t i, std::uint32_t j) const { return gradient.before(i * width + j); }
    __device__ void operator()(std::uint32_t i, std::uint32_t j, T value, const Before& before) const {
      gradient(i * width + j, value, before);
    }
  };
  [[nodiscard]] __device__ Client open(std::size_t k) const { return {gradient.open(k), static_cast<std::uint32_t>(width)}; }
};

// An operand or a store whose client 0 is client `first` of the original.
template <class Operand>
struct FromClient {
  static constexpr bool kRunsInward = Operand::kRunsInward, kTakesLong = Operand::kTakesLong;
  std::size_t first;
  Operand of;
  using View = decltype(std::declval<const Operand&>().open(0));
  [[nodiscard]] __device__ View open(std::size_t k) const { return of.open(first + k); }
};
template <class Store>
struct StoreFromClient {
  std::size_t first;
  Store of;
  using Before = typename Store::Before;
  using Client = typename Store::Client;
  [[nodiscard]] __device__ Client open(std::size_t k) const { return of.open(first + k); }
};

}  // namespace fl::cuda
