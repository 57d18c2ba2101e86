// Quadratics as data: a row is one function l(x) = 1/2 x^T A x - b^T x + c, kept as [A (d*d, row-major), b (d), c], so that a Dataset of
// d*d + d + 1 features without labels holds a whole problem, and minibatches and partitions of it mean what they always mean.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fl_core/data/dataset.hpp"

namespace fl {

[[nodiscard]] constexpr std::size_t quadratic_features(std::size_t dimension) { return dimension * dimension + dimension + 1; }

struct Quadratic {
  std::vector<double> A;  // [d,d] symmetric
  std::vector<double> b;  // [d]
  double c = 0;
};

// An empty problem of n clients with the same number of rows each.
template <class T>
[[nodiscard]] Dataset<T> allocate_quadratics(const std::string& name, std::size_t num_clients, std::size_t rows_per_client,
                                             std::size_t dimension) {
  Dataset<T> data;
  data.name = name;
  data.num_rows = num_clients * rows_per_client;
  data.num_features = quadratic_features(dimension);
  data.allocate_dense();
  for (std::size_t i = 0; i <= num_clients; ++i) data.client_begin.push_back(i * rows_per_client);
  return data;
}

template <class T>
void store_quadratic(const Quadratic& quadratic, std::size_t row, Dataset<T>& data) {
  T* to = data.dense_row(row);
  for (const double a : quadratic.A) *to++ = static_cast<T>(a);
  for (const double b : quadratic.b) *to++ = static_cast<T>(b);
  *to = static_cast<T>(quadratic.c);
}

}  // namespace fl
