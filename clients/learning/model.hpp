// A client model: f_i(x) = mean over client i's rows of l(x; row) + regulariser(x), with x [P] flat.
//
// The regulariser counts every weight, a bias included:   (l2/2) |x|^2 + nonconvex * sum_j x_j^2 / (1 + x_j^2).
// Its second derivative lies between l2 - nonconvex/2 and l2 + 2*nonconvex.
//
// A model whose loss has cheap second derivatives is also a SecondOrder, in double for every T. x*, f*, L and mu are computed from it
// (optimum.hpp, constants.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clients/learning/network_form.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/data/dataset.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/random/random.hpp"
#include "fl_core/round/stated_cost.hpp"

namespace fl {

// Constants of f = sum_i w_i f_i, with or without the regulariser as stated.
struct ProblemConstants {
  double L = 0;             // smoothness of f, regulariser excluded (for logistic regression sigma_max(A)^2 / (4m))
  double L_max = 0;         // largest L_i, regulariser excluded
  std::vector<double> L_i;  // [n]
  double mu = 0;            // strong convexity of f, regulariser included; 0 = none known
};

struct Accuracy {
  double loss = 0;      // mean loss without regulariser
  double accuracy = 0;  // fraction classified correctly; NaN for models without classes
};

struct Regulariser {
  double l2 = 0, nonconvex = 0;

  template <class X>
  [[nodiscard]] double value(const X* x, std::size_t P) const {
    double squares = 0, bounded = 0;
    for (std::size_t j = 0; j < P; ++j) {
      const double s = static_cast<double>(x[j]) * static_cast<double>(x[j]);
      squares += s;
      if (nonconvex != 0) bounded += s / (1 + s);
    }
    return 0.5 * l2 * squares + nonconvex * bounded;
  }
  [[nodiscard]] FL_HD double derivative(double x) const {
    if (nonconvex == 0) return l2 * x;
    const double d = 1 + x * x;
    return l2 * x + nonconvex * 2 * x / (d * d);
  }
  [[nodiscard]] double curvature(double x) const {
    if (nonconvex == 0) return l2;
    const double d = 1 + x * x;
    return l2 + nonconvex * (2 - 6 * x * x) / (d * d * d);
  }
  [[nodiscard]] double least_curvature() const { return l2 - nonconvex / 2; }
  [[nodiscard]] double largest_curvature() const { return l2 + 2 * nonconvex; }
};

// A weighted sum over rows: sum_r weight[r] l(x; rows[r]); no weights means 1 each.
struct RowSet {
  std::span<const std::uint32_t> rows;
  std::span<const double> weight = {};
  [[nodiscard]] double total() const {
    if (weight.empty()) return static_cast<double>(rows.size());
    double sum = 0;
    for (const double w : weight) sum += w;
    return sum;
  }
};

// The loss (regulariser excluded) of a model in double, with its Hessian. Thread-safe.
class FL_API SecondOrder {
 public:
  // Bounds on the eigenvalues of the Hessian of a RowSet, valid at every x. `least` is 0 if only convexity is known.
  struct Curvature {
    double least = 0, largest = 0;
  };
  virtual ~SecondOrder() = default;
  // Returns the sum over `set`; gradient [P], unless null, receives its gradient.
  virtual double evaluate(const Exec& exec, const double* x, RowSet set, double* gradient) const = 0;
  // Computes out [P] = Hessian at x of the sum over `set`, times v [P].
  virtual void hessian_times(const Exec& exec, const double* x, RowSet set, const double* v, double* out) const = 0;
  // Adds the same Hessian to H [P,P], row-major and symmetric.
  virtual void add_hessian(const Exec& exec, const double* x, RowSet set, double* H) const = 0;
  [[nodiscard]] virtual Curvature curvature(RowSet set) const = 0;
  // Writes bounds on the diagonal of the same Hessian, valid at every x, to bound [P].
  virtual void bound_diagonal(const Exec& exec, RowSet set, std::span<double> bound) const {
    static_cast<void>(exec);
    std::ranges::fill(bound, curvature(set).largest);
  }
  // Removes from v [P] what changes no loss wherever it is added to x, such as one number added to a feature's weights of all classes.
  // Returns false, and leaves v alone, if nothing of this kind is known. f has its minimum among what is left.
  virtual bool centre(std::span<double> v) const {
    static_cast<void>(v);
    return false;
  }
  // Returns a number rho that says how fast the Hessian H of the same sum changes: with |v|_H^2 = v^T H(x) v, H(x + v) lies between
  // exp(-rho |v|_H) H(x) and exp(rho |v|_H) H(x) for every v. 0 for a quadratic function, infinity if no such number is known.
  [[nodiscard]] virtual double relative_change(const Exec& exec, const double* x, RowSet set) const {
    static_cast<void>(exec), static_cast<void>(x), static_cast<void>(set);
    return is_quadratic_ ? 0 : std::numeric_limits<double>::infinity();
  }

 protected:
  explicit SecondOrder(bool is_quadratic = false) : is_quadratic_(is_quadratic) {}

 private:
  bool is_quadratic_;  // every loss is a quadratic function of the parameters
};

// The rows of K clients' stochastic gradients, and the random numbers of each (dropout). For a model with running averages `random` may
// be empty: then nothing is drawn, and their entries are still those of a minibatch.
struct Minibatch {
  std::span<const std::span<const std::uint32_t>> rows;  // [K]
  std::span<const RandomStream> random;                  // [K]
};

// Properties of a model that do not depend on its parameters.
struct ModelTraits {
  bool starts_at_random = false;  // a start at zero would be a saddle point, so initial() is the default
  bool takes_pixels = false;      // accepts images as pixels; otherwise they are expanded to dense rows before bind
  bool takes_tokens = false;      // accepts tokens as features; otherwise data of tokens are refused
  bool loss_is_convex = false;    // a minimum can be computed; known after bind
};

// The requirements of a gradient over a number of rows.
struct MinibatchNeeds {
  std::size_t least_rows = 1;  // fewest rows of a gradient: more than one if a layer takes the variance over the minibatch
  bool takes_whole = false;    // all rows of a gradient are computed at once, whatever their number
  std::uint64_t bytes = 0;     // approximate memory of such a gradient, 0 if it is little
};

template <class T>
class FL_API Model {
 public:
  virtual ~Model() = default;

  // Binds to data, which must outlive the model, and stores it in data_ if as_form() describes the model, and the cost of gradients in
  // cost_. Called once. Throws ConfigError if the data does not fit the model.
  virtual void bind(const Dataset<T>& data) = 0;
  // Sets the regulariser's weights as numbers (rules are already resolved).
  void set_regulariser(double l2, double nonconvex) { regulariser_ = {l2, nonconvex}; }
  [[nodiscard]] const Regulariser& regulariser() const { return regulariser_; }
  [[nodiscard]] virtual LayerTable layers() const = 0;       // after bind
  virtual void initial(std::uint64_t seed, T* x) const = 0;  // [P]
  [[nodiscard]] virtual ModelTraits traits() const = 0;

  // Computes for each client k: gradient[k] = gradient at x[k] of the mean loss over rows[k] plus regulariser. x may have stride 0 and does
  // not overlap gradient, whose running averages are 0. loss [K], unless null, receives the values. For a client without rows, the
  // regulariser alone counts.
  virtual void gradient(const Exec& exec, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows, BatchView<T> gradient,
                        double* loss) const = 0;

  // Computes the same on minibatches; models with randomness of their own use it here.
  virtual void stochastic_gradient(const Exec& exec, BatchView<const T> x, const Minibatch& batch, BatchView<T> gradient_out,
                                   double* loss) const {
    gradient(exec, x, batch.rows, gradient_out, loss);
  }

  // Returns the sum of losses over rows of `data` (no regulariser, not divided). Counts the correctly predicted labels in `correct` unless
  // it is null: one per row, or one per position if the data has labels there (labels_per_row).
  [[nodiscard]] virtual double loss_sum(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                        std::uint64_t* correct) const = 0;
  // Returns how many numbers the model computes for a row before its loss, such as a score; 0 for a model that does not offer them.
  [[nodiscard]] virtual std::size_t num_outputs() const { return 0; }
  // Computes z [rows,num_outputs()] of rows of `data`, which has the features of the data that the model is bound to.
  virtual void outputs(const Exec& /*exec*/, const T* /*x*/, const Dataset<T>& /*data*/, std::span<const std::uint32_t> /*rows*/,
                       T* /*z*/) const {
    throw ConfigError("this model does not offer its outputs");
  }
  // Returns the regulariser's value at x [P]; it excludes running averages (Layer::running_rate).
  [[nodiscard]] double regulariser(const T* x) const;

  [[nodiscard]] virtual MinibatchNeeds minibatch_needs(std::size_t /*rows*/) const { return {}; }

  // Returns the model as layers of plain numbers, for a GPU, or no value if it has no such form. training_data() returns the data that it
  // is bound to.
  [[nodiscard]] virtual std::optional<NetworkForm> as_form() const { return std::nullopt; }
  [[nodiscard]] const Dataset<T>* training_data() const { return data_; }
  // Returns the cost of gradients after bind, or no value if the model does not state it.
  [[nodiscard]] const std::optional<ModelCost>& cost() const { return cost_; }

  // Returns null for a model without a Hessian.
  [[nodiscard]] virtual const SecondOrder* second_order() const { return nullptr; }
  [[nodiscard]] bool is_convex() const { return traits().loss_is_convex && regulariser_.least_curvature() >= 0; }
  // Returns the smoothness constant of the mean loss over rows, regulariser excluded. Throws ConfigError without second_order().
  [[nodiscard]] double smoothness(std::span<const std::uint32_t> rows) const;

 protected:
  Regulariser regulariser_;
  const Dataset<T>* data_ = nullptr;  // the data that the model is bound to
  std::optional<ModelCost> cost_;     // of gradients, which bind() states
};

template <class T>
double Model<T>::regulariser(const T* x) const {
  if (regulariser_.l2 == 0 && regulariser_.nonconvex == 0) return 0;
  const LayerTable table = layers();
  double value = 0;
  std::size_t begin = 0;  // of the weights that have not been counted
  for (const Layer& layer : table.layers) {
    if (layer.running_rate == 0) continue;
    if (layer.begin > begin) value += regulariser_.value(x + begin, layer.begin - begin);
    begin = layer.begin + layer.size();
  }
  return value + regulariser_.value(x + begin, table.size() - begin);
}

template <class T>
double Model<T>::smoothness(std::span<const std::uint32_t> rows) const {
  if (second_order() == nullptr) throw ConfigError("the smoothness constant L is not known for this model: give step sizes as numbers");
  const auto bounds = second_order()->curvature({rows});
  const double largest = bounds.largest > -bounds.least ? bounds.largest : -bounds.least;
  return largest / static_cast<double>(rows.size());
}

}  // namespace fl
