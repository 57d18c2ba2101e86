#include "python/src/python_model.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace fl::python {

namespace {

// Rows of a data set that are evaluated at a time.
constexpr std::size_t kRowsAtOnce = 2048;

template <class T>
nb::dict facts_of(const Dataset<T>& data) {
  nb::dict facts;
  facts["name"] = nb::str(data.name.c_str());
  facts["num_rows"] = data.num_rows;
  facts["num_features"] = data.num_features;
  facts["num_classes"] = data.num_classes;
  facts["shape"] = nb::cast(data.shape.empty() ? std::vector<std::size_t>{data.num_features} : data.shape);
  facts["dtype"] = nb::str(sizeof(T) == sizeof(float) ? "float32" : "float64");
  return facts;
}

}  // namespace

template <class T>
void PythonModel<T>::bind(const Dataset<T>& data) {
  bound_ = &data;
  with_python([&] {
    using Tensor = std::tuple<std::string, std::size_t, std::size_t, double>;  // name, rows, columns, rate of a running average
    for (const auto& [name, rows, cols, rate] : nb::cast<std::vector<Tensor>>(object_.call("_bind", facts_of(data))))
      layers_.layers.push_back({.name = name, .begin = layers_.size(), .rows = rows, .cols = cols, .running_rate = rate});
    least_rows_ = nb::cast<std::size_t>(object_.call("_least_rows"));
    if (const nb::object flops = object_.call("_stated_flops"); !flops.is_none())
      this->cost_ = cost_of(nb::cast<double>(flops), layers_.size(), data.num_features);
  });
}

// The operations are the model's. Memory is counted as for a network: features are read in both passes, weights too, and the gradient is
// written.
template <class T>
ModelCost PythonModel<T>::cost_of(double flops, std::size_t P, std::size_t num_features) {
  StretchCost cost{.begin = 0, .end = P};
  const auto weights = static_cast<double>(P), features = static_cast<double>(num_features);
  cost.forward = {.row = work_on<T>(flops / 3, features), .minibatch = work_on<T>(0, weights)};
  cost.backward = {.row = work_on<T>(2 * flops / 3, features), .minibatch = work_on<T>(0, 2 * weights)};
  return {{cost}};
}

template <class T>
ModelTraits PythonModel<T>::traits() const {
  return with_python(
      [&] { return ModelTraits{.starts_at_random = nb::cast<bool>(object_.call("_starts_at_random")), .loss_is_convex = false}; });
}

template <class T>
void PythonModel<T>::initial(std::uint64_t seed, T* x) const {
  with_python([&] { object_.call("_initial", seed, array_of(x, {layers_.size()})); });
}

// Gathers the rows of a sample for Python. The number of a minibatch's own is for models that draw (dropout).
template <class T>
nb::object PythonModel<T>::rows_of(const Dataset<T>& data, std::span<const std::uint32_t> rows, const RandomStream* random) const {
  const std::size_t m = rows.size();
  const auto [features, values] = new_array<T>({m, data.num_features});
  const auto [numbers, places] = new_array<std::int64_t>({m});
  data.gather(rows, values);
  std::ranges::copy(rows, places);
  nb::object labels = nb::none();
  if (!data.label.empty()) {
    const auto [classes, to] = new_array<std::int64_t>({m});
    std::ranges::transform(rows, to, [&data](std::uint32_t row) { return data.label[row]; });
    labels = classes;
  } else if (!data.target.empty()) {
    const auto [targets, to] = new_array<T>({m});
    std::ranges::transform(rows, to, [&data](std::uint32_t row) { return static_cast<T>(data.target[row]); });
    labels = targets;
  }
  const nb::object seed = random == nullptr ? nb::none() : nb::object(nb::int_(random->bits(0)));
  return object_.call("_rows", features, labels, numbers, seed);
}

template <class T>
void PythonModel<T>::gradient_of(std::size_t k, const T* x, std::span<const std::uint32_t> rows, const RandomStream* random, T* gradient,
                                 double* loss) const {
  double value = 0;
  if (rows.empty())
    std::fill_n(gradient, layers_.size(), T(0));
  else
    value = with_python(
        [&] {
          return nb::cast<double>(object_.call("_gradient", array_of<const T>(x, {layers_.size()}), rows_of(*bound_, rows, random),
                                               array_of(gradient, {layers_.size()})));
        },
        k);
  add_regulariser(x, gradient);
  if (loss != nullptr) *loss = value + this->regulariser(x);
}

// Adds the regulariser's derivative to the entries of weights.
template <class T>
void PythonModel<T>::add_regulariser(const T* x, T* gradient) const {
  if (this->regulariser_.l2 == 0 && this->regulariser_.nonconvex == 0) return;
  for (const Layer& layer : layers_.layers) {
    if (layer.running_rate > 0) continue;
    for (std::size_t j = layer.begin; j < layer.begin + layer.size(); ++j)
      gradient[j] += static_cast<T>(this->regulariser_.derivative(static_cast<double>(x[j])));
  }
}

template <class T>
void PythonModel<T>::stochastic_gradient(const Exec&, BatchView<const T> x, const Minibatch& batch, BatchView<T> gradient,
                                         double* loss) const {
  for (std::size_t k = 0; k < x.K; ++k)
    gradient_of(k, x.row(k), batch.rows[k], batch.random.empty() ? nullptr : &batch.random[k], gradient.row(k),
                loss == nullptr ? nullptr : loss + k);
}

template <class T>
double PythonModel<T>::loss_sum(const Exec&, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const {
  double sum = 0;
  if (correct != nullptr) *correct = 0;
  for (std::size_t first = 0; first < rows.size(); first += kRowsAtOnce) {
    const std::span<const std::uint32_t> some = rows.subspan(first, std::min(kRowsAtOnce, rows.size() - first));
    with_python([&] {
      const nb::object both =
          object_.call("_loss", array_of<const T>(x, {layers_.size()}), rows_of(data, some, nullptr), correct != nullptr);
      sum += nb::cast<double>(both[0]);
      if (correct != nullptr) *correct += nb::cast<std::uint64_t>(both[1]);
    });
  }
  return sum;
}

template class PythonModel<float>;
template class PythonModel<double>;

}  // namespace fl::python
