// A client model: f_i(x) = mean over client i's rows of l(x; row) + regulariser(x), with x [P] flat.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "fl_core/batch_view.hpp"
#include "fl_core/dataset.hpp"
#include "fl_core/exec.hpp"
#include "fl_core/layer_table.hpp"

namespace fl {

// Constants of f = sum_i w_i f_i: with and without the regulariser as stated.
struct ProblemConstants {
  double L = 0;             // smoothness of f, regulariser excluded (for logistic regression sigma_max(A)^2 / (4m))
  double L_max = 0;         // largest L_i, regulariser excluded
  std::vector<double> L_i;  // [n]
  double mu = 0;            // strong convexity of f, regulariser included; 0 = none known
};

struct Accuracy {
  double loss = 0;      // mean loss without regulariser
  double accuracy = 0;  // fraction right; NaN for models without classes
};

template <class T>
class Model {
 public:
  virtual ~Model() = default;

  // Binds to data; called once. Throws ConfigError when the data does not fit the model. `l2` and `nonconvex` are resolved numbers.
  virtual void bind(const Dataset<T>& data) = 0;
  virtual void set_regulariser(double l2, double nonconvex) = 0;
  [[nodiscard]] virtual LayerTable layers() const = 0;  // after bind
  [[nodiscard]] virtual bool is_convex() const = 0;
  virtual void initial(std::uint64_t seed, T* x) const = 0;  // [P]

  // For each client k: gradient[k] = gradient at x[k] of the mean loss over rows[k] plus regulariser. x may have stride 0.
  // loss [K], when not null, receives the same functions' values.
  virtual void gradient(const Exec& exec, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows, BatchView<T> gradient,
                        double* loss) const = 0;

  // Sum of losses over rows (no regulariser, not divided), and how many rows were classified right (when correct is not null).
  [[nodiscard]] virtual double loss_sum(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                        std::uint64_t* correct) const = 0;
  // The regulariser's value at x.
  [[nodiscard]] virtual double regulariser(const T* x) const = 0;

  // Hessian-vector products and smoothness; for convex models.
  // out[P] = Hessian of the sum of losses over rows (no regulariser) times v.
  virtual void hessian_times(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, const double* v, double* out) const = 0;
  // Dense Hessian of the same, added into H [P,P] row-major (double). Only for P small enough; see optimum.hpp.
  virtual void add_hessian(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, double* H) const = 0;
  // Smoothness constant of the mean loss over rows, regulariser excluded.
  [[nodiscard]] virtual double smoothness(std::span<const std::uint32_t> rows) const = 0;
};

}  // namespace fl
