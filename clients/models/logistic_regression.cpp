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
#include "fl_core/registry.hpp"

namespace fl::FL_DEVICE_NS {

struct LogisticRegressionOptions {
  bool bias = true;
  bool multinomial = false;
};
inline void describe(Schema& schema, LogisticRegressionOptions& options) {
  schema.field("bias", options.bias, "a constant term per output; regularised like the weights");
  schema.field("multinomial", options.multinomial, "one weight vector per class even for two classes; always so for more than two");
}

template <class T>
class LogisticRegression final : public kernels::LinearModel<T, LogisticRegression<T>> {
 public:
  explicit LogisticRegression(const LogisticRegressionOptions& options)
      : kernels::LinearModel<T, LogisticRegression<T>>(options.bias), multinomial_(options.multinomial) {}

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

 private:
  bool multinomial_;
  std::size_t classes_ = 2;
};

FL_REGISTER_PART(Model, LogisticRegression, LogisticRegressionOptions,
                 (PartInfo{"model", "logistic_regression", "log loss of linear margins, two classes or many; convex", ""}));

}  // namespace fl::FL_DEVICE_NS
