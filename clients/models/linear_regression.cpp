// Least squares: l(x; a, t) = (<w,a> + b - t)^2 / 2 with x = (w [D], b [1]). The l2 term counts the bias too.
#include <memory>

#include "clients/kernels/linear_model.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct LinearRegressionOptions {
  bool bias = true;
};
inline void describe(Schema& schema, LinearRegressionOptions& options) {
  schema.field("bias", options.bias, "a constant term; regularised like the weights");
}

template <class T>
class LinearRegression final : public kernels::LinearModel<T, LinearRegression<T>> {
 public:
  explicit LinearRegression(const LinearRegressionOptions& options) : kernels::LinearModel<T, LinearRegression<T>>(options.bias) {}

  static constexpr double kLinkOperations = 3;

  std::size_t check(const Dataset<T>& data) {
    if (data.target.size() != data.num_rows)
      throw ConfigError("linear_regression needs a target per row, data set \"" + data.name + "\" has " +
                        std::to_string(data.target.size()) + " for " + std::to_string(data.num_rows) + " rows");
    return 1;
  }
  [[nodiscard]] std::optional<NetworkForm> as_form() const override {
    const auto& shape = this->shape();
    return linear_form(shape.D, 1, shape.bias, NetworkForm::Loss::half_squared);
  }
  template <class F>
  auto with_link(const Dataset<T>& data, const F& f) const {
    return f(kernels::SquaredLink(data.target.data()));
  }
};

FL_REGISTER_PART(Model, LinearRegression, LinearRegressionOptions,
                 (PartInfo{"model", "linear_regression", "half squared error of a linear prediction; convex", ""}));

}  // namespace fl
