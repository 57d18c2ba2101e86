// Gram matrices and extreme eigenvalues: what the smoothness of a linear model is made of.
#pragma once

#include <cstddef>
#include <functional>

namespace fl::kernels {

// G [n,n] row-major, lower triangle: G += B^T diag(w) B for B [m,n] row-major; weights may be negative.
void add_gram(const double* B, const double* w, std::size_t m, std::size_t n, double* G);
// G [m,m] row-major, lower triangle: G = B B^T for B [m,n] row-major.
void outer_gram(const double* B, std::size_t m, std::size_t n, double* G);

struct Extremes {
  double least = 0, largest = 0;
};
// Of a symmetric G [n,n] given by its lower triangle (row-major), by Householder tridiagonalisation and QR.
[[nodiscard]] Extremes extreme_eigenvalues(const double* G, std::size_t n);

// Largest eigenvalue of a symmetric positive semidefinite operator on R^n by Lanczos iteration with full reorthogonalisation
// (C. Lanczos, "An iteration method for the solution of the eigenvalue problem", J. Res. Nat. Bur. Standards 45, 1950), to a relative
// residual of 1e-12 squared over the gap, at the latest at 1e-13 between steps. The start vector is fixed.
[[nodiscard]] double largest_eigenvalue(std::size_t n, const std::function<void(const double* v, double* out)>& apply);

}  // namespace fl::kernels
