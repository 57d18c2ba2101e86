// The compiler warns about Eigen's deliberately undefined AVX-512 registers once they are inlined here.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "clients/kernels/gram.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <vector>

#include "fl_core/random/random.hpp"

namespace fl::kernels {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

static Eigen::Index index(std::size_t n) { return static_cast<Eigen::Index>(n); }

void add_gram(const double* B, const double* w, std::size_t m, std::size_t n, double* G) {
  const Eigen::Map<const Matrix> rows(B, index(m), index(n));
  const Eigen::Map<const Vector> weight(w, index(m));
  Eigen::Map<Matrix> gram(G, index(n), index(n));
  const Matrix weighted = weight.asDiagonal() * rows;
  gram.triangularView<Eigen::Lower>() += rows.transpose() * weighted;
}

void outer_gram(const double* B, std::size_t m, std::size_t n, double* G) {
  const Eigen::Map<const Matrix> rows(B, index(m), index(n));
  Eigen::Map<Matrix> gram(G, index(m), index(m));
  gram.setZero();
  gram.selfadjointView<Eigen::Lower>().rankUpdate(rows);
}

Extremes extreme_eigenvalues(const double* G, std::size_t n) {
  const Eigen::Map<const Matrix> gram(G, index(n), index(n));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(Eigen::MatrixXd(gram), Eigen::EigenvaluesOnly);
  return {solver.eigenvalues().minCoeff(), solver.eigenvalues().maxCoeff()};
}

bool is_positive_semidefinite(const double* G, std::size_t n) {
  Eigen::MatrixXd shifted = Eigen::Map<const Matrix>(G, index(n), index(n));
  const double scale = shifted.diagonal().cwiseAbs().maxCoeff();
  if (scale == 0) return shifted.isZero(0);
  shifted.diagonal().array() += 1e-12 * scale;
  return Eigen::LLT<Eigen::MatrixXd>(shifted).info() == Eigen::Success;
}

double largest_eigenvalue(std::size_t n, const std::function<void(const double* v, double* out)>& apply) {
  const std::size_t max_steps = std::min<std::size_t>(n, 400);
  RandomSequence random(0x4C616E637A6F73ull, Purpose::start);
  Vector v(index(n)), next(index(n));
  for (auto& entry : v) entry = random.normal();
  v.normalize();
  std::vector<Vector> basis;
  std::vector<double> diagonal, beside;
  double largest = 0;
  for (std::size_t step = 0; step < max_steps; ++step) {
    basis.push_back(v);
    apply(v.data(), next.data());
    diagonal.push_back(v.dot(next));
    for (int twice = 0; twice < 2; ++twice)
      for (const auto& q : basis) next -= q.dot(next) * q;
    const double beta = next.norm();
    Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
    solver.computeFromTridiagonal(Eigen::Map<const Vector>(diagonal.data(), index(diagonal.size())),
                                  Eigen::Map<const Vector>(beside.data(), index(beside.size())));
    const double ritz = solver.eigenvalues().maxCoeff();
    // |A y - ritz y| of the Ritz vector; the eigenvalue's own error is its square over the gap.
    const double residual = beta * std::abs(solver.eigenvectors()(index(step), index(step)));
    const bool settled = ritz - largest <= 1e-15 * ritz && residual <= 1e-9 * ritz;
    largest = ritz;
    if (settled || residual <= 1e-13 * ritz) break;
    beside.push_back(beta);
    v = next / beta;
  }
  return largest;
}

}  // namespace fl::kernels
