// Quadratics with a dial for heterogeneity: clients whose gradients at the optimum are as far apart as asked.
//
//   f_i(x) = 1/2 x^T A_i x - b_i^T x + c_i      A_i = Q_i diag(lambda) Q_i^T,  lambda_j = mu (L/mu)^(j/(d-1)),  Q_i a random rotation
//   b_i = A_i x* - g_i,   sum g_i = 0,   1/n sum |g_i|^2 = zeta_sq
// so that x* minimises f = 1/n sum f_i, f(x*) = 0, and 1/n sum |grad f_i(x*) - grad f(x*)|^2 = zeta_sq up to rounding.
// hessians = "shared": one A for all, zeta^2 is the same at every x, and mu and L are those of f. "per_client": an own rotation each, and
// zeta^2 grows away from x*; mu and L are those of each f_i.
// A client's r rows have the same A_i and b_i - xi_j, sum xi_j = 0, 1/r sum |xi_j|^2 = noise: the variance of a one-row gradient.
#include <cmath>

#include "fl_core/config/registry.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/data/data_generator.hpp"
#include "fl_core/random/random.hpp"
#include "scenarios/data/memory_limit.hpp"
#include "scenarios/data/quadratic_rows.hpp"

namespace fl {
namespace {

enum class Hessians { shared, per_client };

struct QuadraticsOptions {
  std::int64_t clients = 10, dimension = 20, rows_per_client = 1;
  double mu = 0.1, L = 1, zeta_sq = 1, noise = 0, optimum_norm = 1;
  Hessians hessians = Hessians::shared;
};
void describe(Schema& schema, QuadraticsOptions& options) {
  schema.field("clients", options.clients, "number of clients, n").at_least(1).at_most(1e6);
  schema.field("dimension", options.dimension, "number of parameters, d").at_least(1).at_most(10000);
  schema.field("rows_per_client", options.rows_per_client, "functions per client; their mean is the client's function")
      .at_least(1)
      .at_most(1e6);
  schema.field("mu", options.mu, "smallest eigenvalue of the Hessians").above(0);
  schema.field("L", options.L, "largest eigenvalue of the Hessians").above(0);
  schema.field("zeta_sq", options.zeta_sq, "mean squared distance of the clients' gradients at the optimum").at_least(0);
  schema.field("noise", options.noise, "variance of the gradient of one row within its client").at_least(0);
  schema.field("optimum_norm", options.optimum_norm, "Euclidean norm of the optimum; its direction is random").at_least(0);
  schema.choice("hessians", options.hessians, {{Hessians::shared, "shared"}, {Hessians::per_client, "per_client"}},
                "one Hessian for all clients, or a separate rotation of it for each");
}
void validate(const QuadraticsOptions& options, Problems& problems) {
  if (options.mu > options.L)
    problems.push_back({"mu", "must be at most L = " + std::to_string(options.L) + ", is " + std::to_string(options.mu)});
  if (options.zeta_sq > 0 && options.clients < 2)
    problems.push_back({"zeta_sq", "must be 0 with one client, is " + std::to_string(options.zeta_sq)});
  if (options.noise > 0 && options.rows_per_client < 2)
    problems.push_back({"noise", "needs rows_per_client of at least 2, is " + std::to_string(options.noise) + " with 1"});
}

using Vector = std::vector<double>;

double dot(const double* a, const double* b, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

Vector times(const Vector& A, const Vector& x) {
  Vector y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(dot(&A[i * x.size()], x.data(), x.size()));
  return y;
}

// Rows of a random rotation: Gaussian rows, orthonormalised by Gram-Schmidt, twice for full accuracy.
Vector draw_rotation(std::size_t d, RandomSequence& random) {
  Vector Q(d * d);
  for (double& q : Q) q = random.normal();
  for (std::size_t i = 0; i < d; ++i) {
    check_for_stop();
    double* row = &Q[i * d];
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t k = 0; k < i; ++k) {
        const double along = dot(row, &Q[k * d], d);
        for (std::size_t j = 0; j < d; ++j) row[j] -= along * Q[k * d + j];
      }
      const double norm = std::sqrt(dot(row, row, d));
      for (std::size_t j = 0; j < d; ++j) row[j] /= norm;
    }
  }
  return Q;
}

// sum_k lambda_k q_k q_k^T, the upper half computed and mirrored so that it is symmetric to the bit.
Vector hessian(const Vector& lambda, const Vector& Q) {
  const std::size_t d = lambda.size();
  Vector A(d * d, 0.0);
  for (std::size_t k = 0; k < d; ++k) {
    check_for_stop();
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = i; j < d; ++j) A[i * d + j] += lambda[k] * Q[k * d + i] * Q[k * d + j];
  }
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < i; ++j) A[i * d + j] = A[j * d + i];
  return A;
}

// `count` vectors [count,d] with mean zero and mean squared norm `mean_square`.
Vector draw_balanced(std::size_t count, std::size_t d, double mean_square, RandomSequence& random) {
  Vector v(count * d, 0.0);
  if (mean_square == 0) return v;
  for (double& x : v) x = random.normal();
  for (std::size_t j = 0; j < d; ++j) {
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i) mean += v[i * d + j] / static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) v[i * d + j] -= mean;
  }
  const double scale = std::sqrt(mean_square * static_cast<double>(count) / dot(v.data(), v.data(), v.size()));
  for (double& x : v) x *= scale;
  return v;
}

template <class T>
class Quadratics final : public DataGenerator<T> {
 public:
  explicit Quadratics(const QuadraticsOptions& options) : options_(options), d_(static_cast<std::size_t>(options.dimension)) {}

  Dataset<T> generate(std::uint64_t seed) const override {
    const auto n = static_cast<std::size_t>(options_.clients), rows = static_cast<std::size_t>(options_.rows_per_client);
    require_memory(static_cast<double>(n * rows) * static_cast<double>(quadratic_features(d_)) * sizeof(T), "data.quadratics",
                   "use fewer clients, rows_per_client or dimensions");
    RandomSequence common(seed, Purpose::synthetic_data, 0);
    const Vector optimum = draw_optimum(common);
    const Vector g = draw_balanced(n, d_, options_.zeta_sq, common);
    const Vector lambda = eigenvalues();
    const Vector shared = options_.hessians == Hessians::shared ? hessian(lambda, draw_rotation(d_, common)) : Vector{};

    Dataset<T> data = allocate_quadratics<T>("quadratics", n, rows, d_);
    for (std::size_t i = 0; i < n; ++i) {
      RandomSequence random(seed, Purpose::synthetic_data, static_cast<std::uint32_t>(i + 1));
      Quadratic f{shared.empty() ? hessian(lambda, draw_rotation(d_, random)) : shared, {}, 0};
      const Vector centre = times(f.A, optimum);
      const Vector xi = draw_balanced(rows, d_, options_.noise, random);
      for (std::size_t r = 0; r < rows; ++r) {
        f.b = centre;
        for (std::size_t j = 0; j < d_; ++j) f.b[j] -= g[i * d_ + j] + xi[r * d_ + j];
        f.c = dot(f.b.data(), optimum.data(), d_) - 0.5 * dot(centre.data(), optimum.data(), d_);
        store_quadratic(f, i * rows + r, data);
      }
    }
    return data;
  }

 private:
  Vector eigenvalues() const {
    Vector lambda(d_, options_.L);
    for (std::size_t j = 0; j + 1 < d_; ++j)
      lambda[j] = options_.mu * std::pow(options_.L / options_.mu, static_cast<double>(j) / static_cast<double>(d_ - 1));
    return lambda;
  }

  Vector draw_optimum(RandomSequence& random) const {
    Vector x(d_);
    for (double& v : x) v = random.normal();
    const double scale = options_.optimum_norm / std::sqrt(dot(x.data(), x.data(), d_));
    for (double& v : x) v *= scale;
    return x;
  }

  QuadraticsOptions options_;
  std::size_t d_;
};

FL_REGISTER_PART(DataGenerator, Quadratics, QuadraticsOptions,
                 (PartInfo{"data", "quadratics", "quadratics with known optimum, mu, L, zeta^2 and gradient noise", ""}));

}  // namespace
}  // namespace fl
