// Eigen's deliberately undefined AVX-512 registers look like a mistake once they are inlined here.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "clients/optimum.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace fl {

namespace {

using Vector = Eigen::VectorXd;

constexpr int kMaxIterations = 200;
constexpr int kPatience = 2;  // steps in a row that may fail to halve the gradient

// A point with what is known about f there.
struct Point {
  Vector x, gradient;
  double f = 0;
  [[nodiscard]] double gradient_norm() const { return gradient.norm(); }
};

Point evaluate(const Exec& exec, const Objective& f, Vector x) {
  Point point{std::move(x), Vector(static_cast<Eigen::Index>(f.size())), 0};
  point.f = f.evaluate(exec, point.x.data(), point.gradient.data());
  return point;
}

// Newton's direction from the factored Hessian; where that is singular to rounding a growing multiple of the unit matrix is added.
Vector dense_direction(const Exec& exec, const Objective& f, const Point& at) {
  const auto P = static_cast<Eigen::Index>(f.size());
  Eigen::MatrixXd H(P, P);
  f.hessian(exec, at.x.data(), H.data());
  const double scale = H.diagonal().cwiseAbs().maxCoeff();
  for (double damping = 0; damping <= scale; damping = std::max(1e-14 * scale, 10 * damping)) {
    Eigen::MatrixXd damped = H;
    damped.diagonal().array() += damping;
    const Eigen::LDLT<Eigen::MatrixXd> factors(damped);
    const Vector d = factors.vectorD();
    if (factors.info() == Eigen::Success && d.minCoeff() > 1e-15 * d.maxCoeff()) return -factors.solve(at.gradient);
    if (scale == 0) break;
  }
  return -at.gradient;
}

// Conjugate gradients on H p = -gradient until the residual is below `tolerance` times the gradient.
Vector truncated_direction(const Exec& exec, const Objective& f, const Point& at, double tolerance) {
  const auto P = static_cast<Eigen::Index>(f.size());
  Vector p = Vector::Zero(P), residual = -at.gradient, direction = residual, product(P);
  double square = residual.squaredNorm();
  const double enough = tolerance * tolerance * square;
  for (Eigen::Index step = 0; step < std::max<Eigen::Index>(2 * P, 100) && square > enough; ++step) {
    f.hessian_times(exec, at.x.data(), direction.data(), product.data());
    const double curvature = direction.dot(product);
    if (!(curvature > 1e-16 * direction.squaredNorm())) return step == 0 ? direction : p;
    const double length = square / curvature;
    p += length * direction;
    residual -= length * product;
    const double next = residual.squaredNorm();
    direction = residual + (next / square) * direction;
    square = next;
  }
  return p;
}

// x + t p with the first of t = 1, 1/2, 1/4, ... that lowers f enough.
Point line_search(const Exec& exec, const Objective& f, const Point& at, const Vector& p) {
  const double slope = at.gradient.dot(p);
  Point next = evaluate(exec, f, at.x + p);
  for (double t = 0.5; t > 1e-12 && !(next.f <= at.f + 2e-4 * t * slope); t /= 2) next = evaluate(exec, f, at.x + t * p);
  return next;
}

bool is_tiny(const Point& at, const Vector& p) {
  const double decrement = -at.gradient.dot(p);
  return p.lpNorm<Eigen::Infinity>() <= 1e-9 * (1 + at.x.lpNorm<Eigen::Infinity>()) || std::abs(decrement) <= 1e-14 * std::abs(at.f);
}

}  // namespace

Optimum minimise(const Exec& exec, const Objective& f, std::size_t largest_dense) {
  const bool dense = f.size() <= largest_dense;
  Point at = evaluate(exec, f, Vector::Zero(static_cast<Eigen::Index>(f.size())));
  Point best = at;
  const double first_norm = at.gradient_norm();
  bool polishing = false;
  int iteration = 0, idle = 0;
  while (best.gradient_norm() > 0 && idle < kPatience) {
    if (++iteration > kMaxIterations || !std::isfinite(at.f)) {
      std::ostringstream text;
      text << "no minimiser of f was found in " << kMaxIterations << " Newton steps: |grad f| = " << best.gradient_norm()
           << " at |x| = " << best.x.norm() << "; a minimiser exists when l2 is above 0, and evaluate.optimum = false does without one";
      throw ConfigError(text.str());
    }
    const double tolerance = polishing ? 1e-6 : std::min(0.1, std::sqrt(at.gradient_norm() / first_norm));
    const Vector p = dense ? dense_direction(exec, f, at) : truncated_direction(exec, f, at, tolerance);
    polishing = polishing || is_tiny(at, p);
    at = polishing ? evaluate(exec, f, at.x + p) : line_search(exec, f, at, p);
    idle = polishing && at.gradient_norm() > 0.5 * best.gradient_norm() ? idle + 1 : 0;
    if (!polishing || at.gradient_norm() < best.gradient_norm()) best = at;
  }
  return {std::vector<double>(best.x.begin(), best.x.end()), best.f, best.gradient_norm(), iteration};
}

}  // namespace fl
