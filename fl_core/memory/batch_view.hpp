// Vectors of K clients as a matrix [K,P].
//
// rows[k] is the row of `data` of client k, so stored state needs no gather; a null `rows` means row k. Stride 0 shares one vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fl_core/config/device.hpp"

namespace fl {

template <class T>
struct BatchView {
  T* data = nullptr;
  const std::uint32_t* rows = nullptr;  // [K] or null
  std::uint32_t K = 0;
  std::size_t P = 0;
  std::size_t stride = 0;

  [[nodiscard]] FL_HD T* row(std::size_t k) const { return data + (rows != nullptr ? rows[k] : k) * stride; }
  // Returns the view of clients first .. first+count-1.
  [[nodiscard]] BatchView slice(std::uint32_t first, std::uint32_t count) const {
    BatchView view = *this;
    view.K = count;
    if (rows != nullptr)
      view.rows += first;
    else
      view.data += first * stride;
    return view;
  }
  operator BatchView<const T>() const  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<T>) {
    return {data, rows, K, P, stride};
  }
};

// Returns the distance between rows of a matrix with `length` columns, in elements. Rows of 2 KiB and more begin on cache lines, because
// vector loads that cross two lines are slower; this costs at most 3% of memory. Shorter rows are not padded.
template <class T>
[[nodiscard]] constexpr std::size_t aligned_stride(std::size_t length) {
  constexpr std::size_t kLine = 64 / sizeof(T);
  return length < 32 * kLine ? length : (length + kLine - 1) / kLine * kLine;
}

// Returns a view of one vector that K clients share.
template <class T>
[[nodiscard]] BatchView<T> shared_view(T* data, std::uint32_t K, std::size_t P) {
  return {data, nullptr, K, P, 0};
}

// The compressor's input: p = sum_a coefficient[a] * term[a], up to four terms, added left to right without contraction (fused
// multiply-add).
// EF14: e + gamma*g. EF21: g - h.
template <class T>
struct Affine {
  BatchView<const T> term[4];
  T coefficient[4] = {};
  int num_terms = 0;

  Affine& add(T factor, BatchView<const T> view) {
    coefficient[num_terms] = factor;
    term[num_terms++] = view;
    return *this;
  }
  [[nodiscard]] FL_HD std::size_t size() const { return term[0].P; }
  [[nodiscard]] FL_HD std::uint32_t clients() const { return term[0].K; }
  [[nodiscard]] FL_HD T at(std::size_t k, std::size_t j) const {
    T sum = coefficient[0] * term[0].row(k)[j];
    for (int a = 1; a < num_terms; ++a) sum = sum + coefficient[a] * term[a].row(k)[j];
    return sum;
  }
  [[nodiscard]] Affine slice(std::uint32_t first, std::uint32_t count) const {
    Affine part = *this;
    for (int a = 0; a < num_terms; ++a) part.term[a] = term[a].slice(first, count);
    return part;
  }
};

// The state that the fused pass writes in addition to the message; `out` may overlap any term of the input.
enum class StateRule {
  none,             // nothing
  residual,         // p - c            (EF14's error)
  zero_where_sent,  // c sent ? 0 : p   (momentum factor masking)
};

template <class T>
struct StateWrite {
  StateRule rule = StateRule::none;
  BatchView<T> out;  // [K,P]; unused for none
  [[nodiscard]] StateWrite slice(std::uint32_t first, std::uint32_t count) const {
    return rule == StateRule::none ? *this : StateWrite{rule, out.slice(first, count)};
  }
};

}  // namespace fl
