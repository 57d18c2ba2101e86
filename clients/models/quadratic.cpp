// Quadratics: l(x; A, b, c) = x^T A x / 2 - <b, x> + c with x [d], A symmetric.
//
// A row of the data is [A (d*d, row-major), b (d), c], so a dense set with D = d*d + d + 1 features describes one quadratic per row. A may
// be indefinite; the problem then is not convex.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clients/kernels/gram.hpp"
#include "clients/kernels/row_products.hpp"
#include "clients/learning/bounded_gradients.hpp"
#include "clients/learning/model.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl {

template <class T>
class QuadraticModel final : public Model<T>, public SecondOrder, public BoundedGradients {
 public:
  explicit QuadraticModel(const NoOptions&) : SecondOrder(true) {}

  void bind(const Dataset<T>& data) override {
    d_ = static_cast<std::size_t>(std::sqrt(static_cast<double>(data.num_features)));
    if (data.is_sparse || data.num_rows == 0 || d_ == 0 || d_ * d_ + d_ + 1 != data.num_features)
      throw ConfigError("quadratic needs dense rows [A (d*d), b (d), c]; data set \"" + data.name + "\" has " +
                        std::to_string(data.num_rows) + (data.is_sparse ? " sparse" : "") + " rows of " +
                        std::to_string(data.num_features) + " numbers, which is d*d + d + 1 for no d");
    data_ = &data;
    // A x, then <x, A x> and <b, x>, and the difference A x - b.
    const auto d = static_cast<double>(d_);
    StretchCost cost{.begin = 0, .end = d_};
    cost.forward.row = work_on<T>(2 * d * d + 4 * d + 3, d * d + 3 * d + 1);
    cost.backward.row = work_on<T>(3 * d, 4 * d);
    cost.backward.minibatch = work_on<T>(0, d);
    this->cost_ = ModelCost{{cost}};
    convex_ = true;
    std::vector<double> A(d_ * d_);
    for (std::size_t r = 0; r < data.num_rows; ++r) {
      std::copy_n(matrix(r), d_ * d_, A.data());
      check_symmetric(A, r);
      convex_ = convex_ && kernels::is_positive_semidefinite(A.data(), d_);
    }
  }
  [[nodiscard]] LayerTable layers() const override { return {{{"x", 0, d_, 1}}}; }
  void initial(std::uint64_t, T* x) const override { std::fill_n(x, d_, T{}); }
  [[nodiscard]] ModelTraits traits() const override { return {.loss_is_convex = convex_}; }
  [[nodiscard]] const SecondOrder* second_order() const override { return this; }

  void gradient(const Exec& exec, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows, BatchView<T> gradient,
                double* loss) const override {
    Workspace::Frame frame(*exec.workspace);
    double* acc = frame.take<double>(d_);
    double* product = frame.take<double>(d_);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const T* at = x.row(k);
      std::fill_n(acc, d_, 0.0);
      const double over_n = rows[k].empty() ? 0.0 : 1.0 / static_cast<double>(rows[k].size());
      double total = 0;
      for (const auto row : rows[k]) total += add_row(data_->dense_row(row), at, 1.0, product, acc);
      if (loss != nullptr) loss[k] = over_n * total + this->regulariser_.value(at, d_);
      T* out = gradient.row(k);
      for (std::size_t j = 0; j < d_; ++j)
        out[j] = static_cast<T>(over_n * acc[j] + this->regulariser_.derivative(static_cast<double>(at[j])));
    }
  }
  [[nodiscard]] double loss_sum(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const override {
    if (data.num_features != data_->num_features)
      throw ConfigError("data set \"" + data.name + "\" describes quadratics of another size than the model's d = " + std::to_string(d_));
    if (correct != nullptr) *correct = 0;
    Workspace::Frame frame(*exec.workspace);
    double* product = frame.take<double>(d_);
    double total = 0;
    for (const auto row : rows) total += add_row(data.dense_row(row), x, 0, product, nullptr);
    return total;
  }

  double evaluate(const Exec& exec, const double* x, RowSet set, double* gradient) const override {
    Workspace::Frame frame(*exec.workspace);
    double* product = frame.take<double>(d_);
    if (gradient != nullptr) std::fill_n(gradient, d_, 0.0);
    double total = 0;
    for (std::size_t i = 0; i < set.rows.size(); ++i)
      total += weight(set, i) * add_row(data_->dense_row(set.rows[i]), x, weight(set, i), product, gradient);
    return total;
  }
  void hessian_times(const Exec& exec, const double*, RowSet set, const double* v, double* out) const override {
    Workspace::Frame frame(*exec.workspace);
    double* product = frame.take<double>(d_);
    std::fill_n(out, d_, 0.0);
    for (std::size_t i = 0; i < set.rows.size(); ++i) {
      multiply(matrix(set.rows[i]), v, product);
      for (std::size_t j = 0; j < d_; ++j) out[j] += weight(set, i) * product[j];
    }
  }
  void add_hessian(const Exec&, const double*, RowSet set, double* H) const override {
    for (std::size_t i = 0; i < set.rows.size(); ++i) {
      const T* A = matrix(set.rows[i]);
      for (std::size_t e = 0; e < d_ * d_; ++e) H[e] += weight(set, i) * static_cast<double>(A[e]);
    }
  }
  [[nodiscard]] Curvature curvature(RowSet set) const override {
    std::vector<double> H(d_ * d_, 0.0);
    add_hessian(Exec{}, nullptr, set, H.data());
    const auto extremes = kernels::extreme_eigenvalues(H.data(), d_);
    return {extremes.least, extremes.largest};
  }
  // Rows of one A differ by their b alone, so that the variance is the same everywhere; otherwise it grows with x.
  [[nodiscard]] std::optional<double> gradient_variance(std::span<const std::uint32_t> rows) const override {
    std::vector<double> mean(d_, 0.0);
    for (const std::uint32_t row : rows) {
      if (!std::equal(matrix(row), matrix(row) + d_ * d_, matrix(rows[0]))) return std::nullopt;
      for (std::size_t j = 0; j < d_; ++j) mean[j] += static_cast<double>(matrix(row)[d_ * d_ + j]) / static_cast<double>(rows.size());
    }
    double sum = 0;
    for (const std::uint32_t row : rows)
      for (std::size_t j = 0; j < d_; ++j) sum += std::pow(static_cast<double>(matrix(row)[d_ * d_ + j]) - mean[j], 2);
    return sum / static_cast<double>(rows.size());
  }

 private:
  [[nodiscard]] static double weight(const RowSet& set, std::size_t i) { return set.weight.empty() ? 1.0 : set.weight[i]; }
  [[nodiscard]] const T* matrix(std::size_t row) const { return data_->dense_row(row); }

  void check_symmetric(const std::vector<double>& A, std::size_t row) const {
    double largest = 0;
    for (const double a : A) largest = std::max(largest, std::abs(a));
    for (std::size_t i = 0; i < d_; ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!(std::abs(A[i * d_ + j] - A[j * d_ + i]) <= 1e-6 * largest))
          throw ConfigError("quadratic needs symmetric matrices; in row " + std::to_string(row) + " of data set \"" + data_->name +
                            "\" A[" + std::to_string(i) + "," + std::to_string(j) + "] = " + std::to_string(A[i * d_ + j]) + " and A[" +
                            std::to_string(j) + "," + std::to_string(i) + "] = " + std::to_string(A[j * d_ + i]));
  }
  // out [d] = A v.
  template <class X>
  void multiply(const T* A, const X* v, double* out) const {
    std::size_t i = 0;
    for (; i + 4 <= d_; i += 4) {
      kernels::detail::Rows<4, T> four;
      for (std::size_t r = 0; r < 4; ++r) four.row[r] = A + (i + r) * d_;
      kernels::detail::dot_rows<4, kernels::detail::kNone>(four, v, d_, out + i);
    }
    for (; i < d_; ++i) kernels::detail::dot_rows<1, kernels::detail::kNone>(kernels::detail::Rows<1, T>{{A + i * d_}, {}}, v, d_, out + i);
  }
  // The loss of one row; acc += scale * gradient when acc is not null.
  template <class X>
  double add_row(const T* A, const X* x, double scale, double* product, double* acc) const {
    const T* b = A + d_ * d_;
    multiply(A, x, product);
    double curved = 0, linear = 0;
    for (std::size_t j = 0; j < d_; ++j) {
      curved += product[j] * static_cast<double>(x[j]);
      linear += static_cast<double>(b[j]) * static_cast<double>(x[j]);
    }
    if (acc != nullptr)
      for (std::size_t j = 0; j < d_; ++j) acc[j] += scale * (product[j] - static_cast<double>(b[j]));
    return 0.5 * curved - linear + static_cast<double>(b[d_]);
  }

  const Dataset<T>* data_ = nullptr;
  std::size_t d_ = 0;
  bool convex_ = true;
};

FL_REGISTER_PART(Model, QuadraticModel, NoOptions,
                 (PartInfo{"model", "quadratic", "x^T A x / 2 - <b, x> + c with one (A, b, c) per row; convex when every A is", ""}));

}  // namespace fl
