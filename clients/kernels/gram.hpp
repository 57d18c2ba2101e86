// Gram matrices and extreme eigenvalues, from which the smoothness of a linear model is computed.
#pragma once

#include <cstddef>
#include <functional>

#include "fl_core/config/device.hpp"

namespace fl::kernels {

// Computes G += B^T diag(w) B for B [m,n] row-major, in the lower triangle of G [n,n] row-major. Weights may be negative.
FL_API void add_gram(const double* B, const double* w, std::size_t m, std::size_t n, double* G);
// Computes G = B B^T for B [m,n] row-major, in the lower triangle of G [m,m] row-major.
FL_API void outer_gram(const double* B, std::size_t m, std::size_t n, double* G);

struct Extremes {
  double least = 0, largest = 0;
};
// Returns the extreme eigenvalues of a symmetric G [n,n] given by its lower triangle (row-major), by Householder tridiagonalisation and QR.
[[nodiscard]] FL_API Extremes extreme_eigenvalues(const double* G, std::size_t n);

// Returns whether a symmetric G [n,n] has no eigenvalue below -1e-12 times its largest diagonal entry.
[[nodiscard]] FL_API bool is_positive_semidefinite(const double* G, std::size_t n);

// Returns the largest eigenvalue of a symmetric positive semidefinite operator on R^n by Lanczos iteration with full reorthogonalisation
// (C. Lanczos, "An iteration method for the solution of the eigenvalue problem", J. Res. Nat. Bur. Standards 45, 1950). The iteration ends
// when the residual is below 1e-13 of the eigenvalue, or below 1e-9 (an error of 1e-18 over the relative gap) with an unchanged value. The
// start vector is fixed.
[[nodiscard]] FL_API double largest_eigenvalue(std::size_t n, const std::function<void(const double* v, double* out)>& apply);

}  // namespace fl::kernels
