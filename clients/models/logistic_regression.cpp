// Logistic regression, binary and multinomial.
//
//   two classes   l(x; a, y) = log(1 + exp(-y (<w,a> + b))), class 0 is y = -1 and class 1 is y = +1        x = (w [D], b [1])
//   more          l(x; a, c) = log sum_j exp(<W_j,a> + b_j) - (<W_c,a> + b_c)                                x = (W [C,D], b [C])
//
// Smoothness of the mean over m rows, from |A|_2 with a column of ones for the bias: |A|_2^2 / (4m) for two classes, and at most
// |A|_2^2 / (2m) for the multinomial form (D. Böhning, "Multinomial logistic regression algorithm", Ann. Inst. Statist. Math. 44, 1992).
// The l2 term counts the bias too.
#include <memory>

#include "clients/kernels/linear_model.hpp"
#include "clients/learning/bounded_gradients.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct LogisticRegressionOptions {
  bool bias = true;
  bool multinomial = false;
};
inline void describe(Schema& schema, LogisticRegressionOptions& options) {
  schema.field("bias", options.bias, "a constant term per output; regularised like the weights");
  schema.field("multinomial", options.multinomial, "one weight vector per class even for two classes; always so for more than two");
}

template <class T>
class LogisticRegression final : public kernels::LinearModel<T, LogisticRegression<T>>, public BoundedGradients {
 public:
  explicit LogisticRegression(const LogisticRegressionOptions& options)
      : kernels::LinearModel<T, LogisticRegression<T>>(options.bias), multinomial_(options.multinomial) {}

  static constexpr double kLinkOperations = kFunctionOperations + 4;

  std::size_t check(const Dataset<T>& data) {
    if (data.num_classes < 2)
      throw ConfigError("logistic_regression needs at least two classes, data set \"" + data.name + "\" has " +
                        std::to_string(data.num_classes));
    multinomial_ = multinomial_ || data.num_classes > 2;
    classes_ = data.num_classes;
    return multinomial_ ? classes_ : 1;
  }
  [[nodiscard]] std::optional<NetworkForm> as_form() const override {
    const auto& shape = this->shape();
    return linear_form(shape.D, shape.O, shape.bias, multinomial_ ? NetworkForm::Loss::softmax : NetworkForm::Loss::logistic);
  }
  template <class F>
  auto with_link(const Dataset<T>& data, const F& f) const {
    return multinomial_ ? f(kernels::SoftmaxLink(data.label.data(), classes_)) : f(kernels::LogisticLink(data.label.data()));
  }
  // A row's gradient is s a with |s| < 1 for two classes, and (p - e_c) a with |p - e_c|^2 <= 2 for more; a has a 1 for the bias.
  [[nodiscard]] std::optional<double> gradient_variance(std::span<const std::uint32_t> rows) const override {
    if (rows.size() < 2) return 0.0;
    double sum = 0;
    for (const std::uint32_t row : rows) sum += norm_sq_of(row) + (this->shape().bias ? 1 : 0);
    return (multinomial_ ? 2 : 1) * sum / static_cast<double>(rows.size());
  }

 private:
  [[nodiscard]] double norm_sq_of(std::uint32_t row) const {
    const Dataset<T>& data = *this->training_data();
    const std::size_t begin = data.is_sparse ? data.sparse.row_begin.data()[row] : 0;
    const std::size_t count = data.is_sparse ? data.sparse.row_begin.data()[row + 1] - begin : data.num_features;
    if (data.is_sparse && data.sparse.value.empty()) return static_cast<double>(count);
    std::vector<T> pixels(data.has_pixels() ? data.num_features : 0);
    if (data.has_pixels()) data.gather({&row, 1}, pixels.data());
    const T* entries = data.has_pixels() ? pixels.data() : data.is_sparse ? data.sparse.value.data() + begin : data.dense_row(row);
    double sum = 0;
    for (std::size_t j = 0; j < count; ++j) sum += static_cast<double>(entries[j]) * static_cast<double>(entries[j]);
    return sum;
  }

  bool multinomial_;
  std::size_t classes_ = 2;
};

FL_REGISTER_PART(Model, LogisticRegression, LogisticRegressionOptions,
                 (PartInfo{"model", "logistic_regression", "log loss of linear margins, two classes or many; convex", ""}));

}  // namespace fl
