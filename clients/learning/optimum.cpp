// Eigen's deliberately undefined AVX-512 registers look like a mistake once they are inlined here.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "clients/learning/optimum.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "fl_core/config/stopping.hpp"

namespace fl {

namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int kMaxIterations = 200;
constexpr int kPatience = 2;           // steps in a row that may fail to halve the gradient
constexpr double kWorthScaling = 1e3;  // ratio of the largest to the smallest second derivative from which a second search can help
constexpr double kSettled = 1e-13;     // loss of a row, as a part of f, from which it counts as settled
constexpr double kFlat = 1e-13;        // a part of H's largest eigenvalue up to which a direction counts as flat
constexpr double kHopeless = 1e14;     // ratio from which the first search is left out
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// f as a function of u, where x_j = scale_j u_j; without scales u = x.
class Scaled {
 public:
  Scaled(const Exec& exec, const Objective& f, Vector scale = {}) : exec_(exec), f_(f), scale_(std::move(scale)) {}

  [[nodiscard]] Eigen::Index size() const { return static_cast<Eigen::Index>(f_.size()); }
  [[nodiscard]] bool is_scaled() const { return scale_.size() > 0; }
  [[nodiscard]] Vector point(const Vector& u) const { return is_scaled() ? Vector(u.cwiseProduct(scale_)) : u; }
  double evaluate(const Vector& u, Vector& gradient) const {
    const Vector x = point(u);
    const double value = f_.evaluate(exec_, x.data(), gradient.data());
    if (is_scaled()) gradient.array() *= scale_.array();
    return value;
  }
  [[nodiscard]] Matrix hessian(const Vector& u) const {
    Matrix H(size(), size());
    f_.hessian(exec_, point(u).data(), H.data());
    if (is_scaled()) H = scale_.asDiagonal() * H * scale_.asDiagonal();
    return H;
  }
  [[nodiscard]] Vector hessian_times(const Vector& u, const Vector& v) const {
    Vector product(size());
    f_.hessian_times(exec_, point(u).data(), point(v).data(), product.data());
    if (is_scaled()) product.array() *= scale_.array();
    return product;
  }
  // Does SecondOrder::centre(). The scales of a feature are those of all its classes, so that u may be centred in place of x.
  bool centre(Vector& u) const { return f_.centre({u.data(), static_cast<std::size_t>(u.size())}); }
  [[nodiscard]] double relative_change(const Vector& u) const { return f_.relative_change(exec_, point(u).data()); }
  [[nodiscard]] std::pair<Objective, double> without_settled_rows(const Vector& u, double limit) const {
    return f_.without_settled_rows(exec_, point(u).data(), limit);
  }
  // Returns another function of the same parameters with the same scales.
  [[nodiscard]] Scaled like(const Objective& other) const { return {exec_, other, scale_}; }

 private:
  const Exec& exec_;
  const Objective& f_;
  Vector scale_;
};

// A point with what is known about f there.
struct Point {
  Vector x, gradient;
  double f = 0;
  [[nodiscard]] double gradient_norm() const { return gradient.norm(); }
};

Point evaluate(const Scaled& f, Vector x) {
  Point point{std::move(x), Vector(f.size()), 0};
  point.f = f.evaluate(point.x, point.gradient);
  return point;
}

std::string text_of(double value) {
  std::ostringstream text;
  text << std::setprecision(3) << value;
  return text.str();
}

// Newton's direction from the factored Hessian; where that is singular to rounding a growing multiple of the unit matrix is added.
Vector dense_direction(const Scaled& f, const Point& at) {
  const Matrix H = f.hessian(at.x);
  const double scale = H.diagonal().cwiseAbs().maxCoeff();
  for (double damping = 0; damping <= scale; damping = std::max(1e-14 * scale, 10 * damping)) {
    check_for_stop();
    Matrix damped = H;
    damped.diagonal().array() += damping;
    const Eigen::LDLT<Matrix> factors(damped);
    const Vector d = factors.vectorD();
    if (factors.info() == Eigen::Success && d.minCoeff() > 1e-15 * d.maxCoeff()) return -factors.solve(at.gradient);
    if (scale == 0) break;
  }
  return -at.gradient;
}

// Conjugate gradients on H p = -gradient: p, the residual that is left, and the coefficients of their Lanczos process.
struct Solution {
  Vector p, residual;
  std::vector<double> lengths, ratios;  // alpha_k and beta_k
};

// Stops when the residual is below `tolerance` times the gradient, or H has no curvature along a direction. `centred`: p is looked for
// among what Scaled::centre() leaves.
Solution conjugate_gradients(const Scaled& f, const Point& at, double tolerance, bool centred = false) {
  const Eigen::Index P = f.size();
  Solution found{Vector::Zero(P), -at.gradient, {}, {}};
  if (centred) f.centre(found.residual);
  Vector direction = found.residual;
  double square = found.residual.squaredNorm();
  const double enough = tolerance * tolerance * square;
  for (Eigen::Index step = 0; step < std::max<Eigen::Index>(2 * P, 100) && square > enough; ++step) {
    check_for_stop(
        [&] { return "step " + std::to_string(step + 1) + " of conjugate gradients, |grad f| = " + text_of(at.gradient_norm()); });
    Vector product = f.hessian_times(at.x, direction);
    if (centred) f.centre(product);
    const double curvature = direction.dot(product);
    if (!(curvature > 1e-16 * direction.squaredNorm())) {
      if (step == 0) found.p = direction;
      break;
    }
    const double length = square / curvature;
    found.p += length * direction;
    found.residual -= length * product;
    const double next = found.residual.squaredNorm();
    direction = found.residual + (next / square) * direction;
    found.lengths.push_back(length);
    found.ratios.push_back(next / square);
    square = next;
  }
  return found;
}

// Returns the eigenvalues of the matrix of the Lanczos process that belongs to conjugate gradients.
Vector ritz_values(const Solution& found) {
  const auto n = static_cast<Eigen::Index>(found.lengths.size());
  if (n == 0) return {};
  Vector diagonal(n), beside(std::max<Eigen::Index>(n - 1, 1));
  for (Eigen::Index k = 0; k < n; ++k) {
    const auto at = static_cast<std::size_t>(k);
    diagonal[k] = 1 / found.lengths[at] + (k > 0 ? found.ratios[at - 1] / found.lengths[at - 1] : 0);
    if (k + 1 < n) beside[k] = std::sqrt(found.ratios[at]) / found.lengths[at];
  }
  Eigen::SelfAdjointEigenSolver<Matrix> solver;
  solver.computeFromTridiagonal(diagonal, beside.head(n - 1), Eigen::EigenvaluesOnly);
  return solver.info() == Eigen::Success ? Vector(solver.eigenvalues()) : Vector();
}

// Returns the smallest eigenvalue that is not flat (kFlat); 0 if there is none.
double least_curved(const Vector& eigenvalues) {
  const double most = eigenvalues.size() > 0 ? eigenvalues.maxCoeff() : 0;
  double least = most;
  for (const double one : eigenvalues)
    if (one > kFlat * most) least = std::min(least, one);
  return least;
}

// x + t p with the first of t = 1, 1/2, 1/4, ... that lowers f enough.
Point line_search(const Scaled& f, const Point& at, const Vector& p) {
  const double slope = at.gradient.dot(p);
  Point next = evaluate(f, at.x + p);
  for (double t = 0.5; t > 1e-12 && !(next.f <= at.f + 2e-4 * t * slope); t /= 2) {
    check_for_stop();
    next = evaluate(f, at.x + t * p);
  }
  return next;
}

bool is_tiny(const Point& at, const Vector& p) {
  const double decrement = -at.gradient.dot(p);
  return p.lpNorm<Eigen::Infinity>() <= 1e-9 * (1 + at.x.lpNorm<Eigen::Infinity>()) || std::abs(decrement) <= 1e-14 * std::abs(at.f);
}

// The best point that Newton's method finds from zero.
struct Search {
  Point best;
  double first_f = 0;
  int iterations = 0;
};

Search search(const Scaled& f, bool dense) {
  Point at = evaluate(f, Vector::Zero(f.size()));
  Search found{at, at.f, 0};
  const double first_norm = at.gradient_norm();
  bool polishing = false;
  int idle = 0;
  while (found.best.gradient_norm() > 0 && idle < kPatience && found.iterations < kMaxIterations && std::isfinite(at.f)) {
    ++found.iterations;
    check_for_stop(
        [&] { return "step " + std::to_string(found.iterations) + " of Newton's method, |grad f| = " + text_of(at.gradient_norm()); });
    const double tolerance = polishing ? 1e-6 : std::min(0.1, std::sqrt(at.gradient_norm() / first_norm));
    const Vector p = dense ? dense_direction(f, at) : conjugate_gradients(f, at, tolerance).p;
    polishing = polishing || is_tiny(at, p);
    at = polishing ? evaluate(f, at.x + p) : line_search(f, at, p);
    idle = polishing && at.gradient_norm() > 0.5 * found.best.gradient_norm() ? idle + 1 : 0;
    if (!polishing || at.gradient_norm() < found.best.gradient_norm()) found.best = at;
  }
  return found;
}

// Returns lambda^2 = gradient^T H^-1 gradient, or a bound on it; of a centred point among centred directions. Flat directions of a singular
// H are left out: only settled rows have a part in them, and the slope of any other would be in the gradient.
double squared_decrement(const Scaled& f, const Point& at, bool dense, bool centred) {
  const double square = at.gradient.squaredNorm();
  if (square == 0) return 0;
  if (dense) {
    const Matrix H = f.hessian(at.x);
    const Eigen::LDLT<Matrix> factors(H);
    const Vector d = factors.vectorD();
    if (factors.info() == Eigen::Success && d.minCoeff() > kFlat * d.maxCoeff()) return at.gradient.dot(factors.solve(at.gradient));
    const double least = least_curved(Eigen::SelfAdjointEigenSolver<Matrix>(H, Eigen::EigenvaluesOnly).eigenvalues());
    return least > 0 ? square / least : kInfinity;
  }
  const Solution found = conjugate_gradients(f, at, 1e-3, centred);
  const double least = least_curved(ritz_values(found));
  return least > 0 ? std::min(-at.gradient.dot(found.p) + found.residual.squaredNorm() / least, square / least) : kInfinity;
}

// Returns a bound on f - min f at a point, by Newton's decrement. Centring a point can only lower f, and removes directions along which f
// has no curvature but the regulariser's.
double error_by_decrement(const Scaled& f, const Point& at, bool dense) {
  Vector x = at.x;
  const bool centred = f.centre(x);
  const Point point = centred ? evaluate(f, std::move(x)) : at;
  const double square = squared_decrement(f, point, dense, centred), rho = f.relative_change(point.x);
  return rho == 0 || rho * std::sqrt(square) <= 0.25 ? square + std::max(0.0, at.f - point.f) : kInfinity;
}

// Does the same where error_by_decrement() finds nothing because some rows are settled: a feature that only one class has lets their losses
// fall to 0 for ever, and H with them, while f stays. Losses are at least 0, so that the minimum without these rows is no larger than that
// of f.
double error_without_settled_rows(const Scaled& f, const Point& at, bool dense) {
  const auto [rest, settled] = f.without_settled_rows(at.x, kSettled * at.f);
  const Scaled of_rest = f.like(rest);
  return settled + error_by_decrement(of_rest, evaluate(of_rest, at.x), dense);
}

// Returns the optimum that a search has found, with the smaller one of the two bounds. The second one is computed if the first is too
// large.
Optimum judge(const Exec& exec, const Objective& objective, const Scaled& f, const Search& found, double mu, bool dense) {
  const Vector x = f.point(found.best.x);
  Vector gradient = found.best.gradient;
  if (f.is_scaled()) static_cast<void>(objective.evaluate(exec, x.data(), gradient.data()));
  Optimum optimum{std::vector<double>(x.begin(), x.end()),
                  found.best.f,
                  gradient.norm(),
                  found.iterations,
                  mu > 0 ? gradient.squaredNorm() / (2 * mu) : kInfinity,
                  std::max(std::abs(found.first_f), std::abs(found.best.f))};
  if (!std::isfinite(optimum.f) || !std::isfinite(optimum.gradient_norm))
    optimum.error = kInfinity;
  else if (!optimum.is_known())
    optimum.error = std::min(optimum.error, error_by_decrement(f, found.best, dense));
  if (std::isfinite(optimum.f) && !optimum.is_known() && f.relative_change(found.best.x) > 0)  // of classes, whose losses are at least 0
    optimum.error = std::min(optimum.error, error_without_settled_rows(f, found.best, dense));
  return optimum;
}

// Returns 1 / sqrt of the bound on the second derivative along each parameter, and 1 where that is 0.
Vector scales_of(const std::vector<double>& bounds) {
  Vector scale(static_cast<Eigen::Index>(bounds.size()));
  std::ranges::transform(bounds, scale.begin(), [](double bound) { return bound > 0 ? 1 / std::sqrt(bound) : 1.0; });
  return scale;
}

double spread_of(const std::vector<double>& bounds) {
  double least = kInfinity, most = 0;
  for (const double bound : bounds)
    if (bound > 0) least = std::min(least, bound), most = std::max(most, bound);
  return most / least;
}

ConfigError not_found(const Optimum& optimum, double mu) {
  std::ostringstream text;
  text << "the minimum of f was not found to " << kOptimumDigits << " of its values: after " << optimum.iterations
       << " Newton steps f = " << optimum.f << " and |grad f| = " << optimum.gradient_norm << ", so that f can be " << optimum.error
       << " above its minimum (f is strongly convex with mu = " << mu
       << "); bring the columns of the data to similar sizes, or set evaluate.optimum = false, which leaves f_gap out";
  return ConfigError(text.str());
}

}  // namespace

bool Optimum::is_known() const { return error <= kOptimumDigits * largest || (f == 0 && error == 0); }

Optimum minimise(const Exec& exec, const Objective& f, std::size_t largest_dense) {
  const bool dense = f.size() <= largest_dense;
  const std::vector<double> bounds = f.diagonal_bounds(exec);
  const double spread = spread_of(bounds), mu = std::max(0.0, f.regulariser().least_curvature());
  Optimum optimum;
  optimum.error = kInfinity;
  if (spread < kHopeless) {
    const Scaled plain(exec, f);
    optimum = judge(exec, f, plain, search(plain, dense), mu, dense);
  }
  if (!optimum.is_known() && spread > kWorthScaling) {
    const Scaled scaled(exec, f, scales_of(bounds));
    Optimum second = judge(exec, f, scaled, search(scaled, dense), mu, dense);
    if (optimum.x.empty() || second.error < optimum.error) optimum = std::move(second);
  }
  if (mu > 0 && !optimum.is_known()) throw not_found(optimum, mu);
  return optimum;
}

}  // namespace fl
