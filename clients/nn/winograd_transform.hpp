// The transforms of Winograd's algorithm: F(m x m, r x r) for tiles of m outputs a side and windows of r weights a side.
//
//   outputs Y [m,m] = A^T [(G g G^T) * (B^T d B)] A        for the window g [r,r] and the tile d [m+r-1,m+r-1] of the image
//   d_g [r,r]       = G^T [(A d_Y A^T) * (B^T d B)] G      for the slopes d_Y [m,m]
//
// B, G and A follow from m + r - 2 points, at which the polynomials of image and window are multiplied, and infinity. F(2,3) has the points
// 0 and +-1. F(4,3) and F(2,5) share 0, +-5/8 and +-3/2, which round less than the usual 0, +-1 and +-2. S. Winograd,
// "Arithmetic complexity of computations", SIAM 1980; A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", CVPR 2016;
// on the points B. Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution for deep neural networks", ACM TOMS
// 46, 2020.
#pragma once

#include "clients/nn/vectors.hpp"

namespace fl::nn::winograd {

// Products of a matrix and vectors: image() is B^T, weights() G, outputs() A^T, slopes() A and gradient() G^T.
template <class T, std::size_t kTile, std::size_t kWindow>
struct Transform;

template <class Number>
struct Transform<Number, 2, 3> {
  using T = Number;
  using V = Vec<T>;
  static constexpr std::size_t kTile = 2, kWindow = 3, kSide = 4;
  [[gnu::always_inline]] static void image(const V (&d)[4], V (&v)[4]) {
    v[0] = d[0] - d[2], v[1] = d[1] + d[2], v[2] = d[2] - d[1], v[3] = d[3] - d[1];
  }
  [[gnu::always_inline]] static void weights(const V (&g)[3], V (&u)[4]) {
    const V even = T(0.5) * (g[0] + g[2]), odd = T(0.5) * g[1];
    u[0] = g[0], u[1] = even + odd, u[2] = even - odd, u[3] = g[2];
  }
  [[gnu::always_inline]] static void outputs(const V (&m)[4], V (&y)[2]) { y[0] = m[0] + (m[1] + m[2]), y[1] = (m[1] - m[2]) + m[3]; }
  [[gnu::always_inline]] static void slopes(const V (&y)[2], V (&m)[4]) {
    m[0] = y[0], m[1] = y[0] + y[1], m[2] = y[0] - y[1], m[3] = y[1];
  }
  [[gnu::always_inline]] static void gradient(const V (&u)[4], V (&g)[3]) {
    const V even = T(0.5) * (u[1] + u[2]);
    g[0] = u[0] + even, g[1] = T(0.5) * (u[1] - u[2]), g[2] = even + u[3];
  }
};

// The points 0, +-a and +-b of F(4,3) and F(2,5). A row of G has the factor 1 / product of (its point - another point).
inline constexpr double kA = 5.0 / 8, kB = 3.0 / 2, kA2 = kA * kA, kB2 = kB * kB;
inline constexpr double kOf0 = 1 / (kA2 * kB2), kOfA = 1 / (2 * kA2 * (kA2 - kB2)), kOfB = 1 / (2 * kB2 * (kB2 - kA2));
template <class Number>
struct FivePoints {
  using T = Number;
  using V = Vec<T>;
  static constexpr std::size_t kSide = 6;
  static constexpr T t(double number) { return static_cast<T>(number); }

  [[gnu::always_inline]] static void image(const V (&d)[6], V (&v)[6]) {
    const V even_a = d[4] - t(kB2) * d[2], odd_a = d[3] - t(kB2) * d[1];
    const V even_b = d[4] - t(kA2) * d[2], odd_b = d[3] - t(kA2) * d[1];
    v[0] = t(kA2 * kB2) * d[0] + (d[4] - t(kA2 + kB2) * d[2]);
    v[1] = even_a + t(kA) * odd_a, v[2] = even_a - t(kA) * odd_a;
    v[3] = even_b + t(kB) * odd_b, v[4] = even_b - t(kB) * odd_b;
    v[5] = t(kA2 * kB2) * d[1] + (d[5] - t(kA2 + kB2) * d[3]);
  }
};

template <class Number>
struct Transform<Number, 4, 3> : FivePoints<Number> {
  using typename FivePoints<Number>::V;
  using FivePoints<Number>::t;
  static constexpr std::size_t kTile = 4, kWindow = 3;
  [[gnu::always_inline]] static void weights(const V (&g)[3], V (&u)[6]) {
    const V even_a = t(kOfA) * (g[0] + t(kA2) * g[2]), even_b = t(kOfB) * (g[0] + t(kB2) * g[2]);
    u[0] = t(kOf0) * g[0];
    u[1] = even_a + t(kA * kOfA) * g[1], u[2] = even_a - t(kA * kOfA) * g[1];
    u[3] = even_b + t(kB * kOfB) * g[1], u[4] = even_b - t(kB * kOfB) * g[1];
    u[5] = g[2];
  }
  [[gnu::always_inline]] static void outputs(const V (&m)[6], V (&y)[4]) {
    const V sum_a = m[1] + m[2], odd_a = m[1] - m[2], sum_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + (sum_a + sum_b);
    y[1] = t(kA) * odd_a + t(kB) * odd_b;
    y[2] = t(kA2) * sum_a + t(kB2) * sum_b;
    y[3] = t(kA * kA2) * odd_a + (t(kB * kB2) * odd_b + m[5]);
  }
  [[gnu::always_inline]] static void slopes(const V (&y)[4], V (&m)[6]) {
    const V even_a = y[0] + t(kA2) * y[2], odd_a = y[1] + t(kA2) * y[3], even_b = y[0] + t(kB2) * y[2], odd_b = y[1] + t(kB2) * y[3];
    m[0] = y[0];
    m[1] = even_a + t(kA) * odd_a, m[2] = even_a - t(kA) * odd_a;
    m[3] = even_b + t(kB) * odd_b, m[4] = even_b - t(kB) * odd_b;
    m[5] = y[3];
  }
  [[gnu::always_inline]] static void gradient(const V (&u)[6], V (&g)[3]) {
    const V sum_a = t(kOfA) * (u[1] + u[2]), sum_b = t(kOfB) * (u[3] + u[4]);
    g[0] = t(kOf0) * u[0] + (sum_a + sum_b);
    g[1] = t(kA * kOfA) * (u[1] - u[2]) + t(kB * kOfB) * (u[3] - u[4]);
    g[2] = t(kA2) * sum_a + (t(kB2) * sum_b + u[5]);
  }
};

template <class Number>
struct Transform<Number, 2, 5> : FivePoints<Number> {
  using typename FivePoints<Number>::V;
  using FivePoints<Number>::t;
  static constexpr std::size_t kTile = 2, kWindow = 5;
  [[gnu::always_inline]] static void weights(const V (&g)[5], V (&u)[6]) {
    const V even_a = t(kOfA) * (g[0] + t(kA2) * (g[2] + t(kA2) * g[4])), odd_a = t(kA * kOfA) * (g[1] + t(kA2) * g[3]);
    const V even_b = t(kOfB) * (g[0] + t(kB2) * (g[2] + t(kB2) * g[4])), odd_b = t(kB * kOfB) * (g[1] + t(kB2) * g[3]);
    u[0] = t(kOf0) * g[0];
    u[1] = even_a + odd_a, u[2] = even_a - odd_a;
    u[3] = even_b + odd_b, u[4] = even_b - odd_b;
    u[5] = g[4];
  }
  [[gnu::always_inline]] static void outputs(const V (&m)[6], V (&y)[2]) {
    y[0] = m[0] + ((m[1] + m[2]) + (m[3] + m[4]));
    y[1] = t(kA) * (m[1] - m[2]) + (t(kB) * (m[3] - m[4]) + m[5]);
  }
  [[gnu::always_inline]] static void slopes(const V (&y)[2], V (&m)[6]) {
    m[0] = y[0];
    m[1] = y[0] + t(kA) * y[1], m[2] = y[0] - t(kA) * y[1];
    m[3] = y[0] + t(kB) * y[1], m[4] = y[0] - t(kB) * y[1];
    m[5] = y[1];
  }
  [[gnu::always_inline]] static void gradient(const V (&u)[6], V (&g)[5]) {
    const V sum_a = t(kOfA) * (u[1] + u[2]), sum_b = t(kOfB) * (u[3] + u[4]);
    const V odd_a = t(kA * kOfA) * (u[1] - u[2]), odd_b = t(kB * kOfB) * (u[3] - u[4]);
    g[0] = t(kOf0) * u[0] + (sum_a + sum_b);
    g[1] = odd_a + odd_b;
    g[2] = t(kA2) * sum_a + t(kB2) * sum_b;
    g[3] = t(kA2) * odd_a + t(kB2) * odd_b;
    g[4] = t(kA2 * kA2) * sum_a + (t(kB2 * kB2) * sum_b + u[5]);
  }
};

// Transforms the columns and then the rows of a square [kIn,kIn] by kFunction: reads from(row, column) and calls to(row, column, vector)
// for the square [kOut,kOut].
template <class T, std::size_t kIn, std::size_t kOut, void (*kFunction)(const Vec<T> (&)[kIn], Vec<T> (&)[kOut]), class From, class To>
[[gnu::always_inline]] inline void transform_square(const From& from, const To& to) {
  Vec<T> half[kOut][kIn];
#pragma GCC unroll 6
  for (std::size_t j = 0; j < kIn; ++j) {
    Vec<T> column[kIn], out[kOut];
#pragma GCC unroll 6
    for (std::size_t i = 0; i < kIn; ++i) column[i] = from(i, j);
    kFunction(column, out);
#pragma GCC unroll 6
    for (std::size_t i = 0; i < kOut; ++i) half[i][j] = out[i];
  }
#pragma GCC unroll 6
  for (std::size_t i = 0; i < kOut; ++i) {
    Vec<T> out[kOut];
    kFunction(half[i], out);
#pragma GCC unroll 6
    for (std::size_t j = 0; j < kOut; ++j) to(i, j, out[j]);
  }
}

}  // namespace fl::nn::winograd
