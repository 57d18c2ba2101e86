// A client model written in Python: fedbits.Model and fedbits.torch.Model.
//
// The features of a sample are gathered into an array of their own, the model computes the mean loss of its rows and its gradient, and the
// regulariser is added here. Python sees one client at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "clients/learning/model.hpp"
#include "python/src/python_part.hpp"

namespace fl::python {

template <class T>
class PythonModel final : public Model<T> {
 public:
  explicit PythonModel(const PythonOptions& options) : object_(options) {}

  void bind(const Dataset<T>& data) override;
  [[nodiscard]] LayerTable layers() const override { return layers_; }
  void initial(std::uint64_t seed, T* x) const override;
  [[nodiscard]] ModelTraits traits() const override;
  [[nodiscard]] MinibatchNeeds minibatch_needs(std::size_t /*rows*/) const override { return {.least_rows = least_rows_}; }

  void gradient(const Exec& exec, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows, BatchView<T> gradient,
                double* loss) const override {
    stochastic_gradient(exec, x, {rows, {}}, gradient, loss);
  }
  void stochastic_gradient(const Exec& exec, BatchView<const T> x, const Minibatch& batch, BatchView<T> gradient,
                           double* loss) const override;
  [[nodiscard]] double loss_sum(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const override;

 private:
  [[nodiscard]] static ModelCost cost_of(double flops, std::size_t P, std::size_t num_features);
  [[nodiscard]] nb::object rows_of(const Dataset<T>& data, std::span<const std::uint32_t> rows, const RandomStream* random) const;
  void gradient_of(std::size_t k, const T* x, std::span<const std::uint32_t> rows, const RandomStream* random, T* gradient,
                   double* loss) const;
  void add_regulariser(const T* x, T* gradient) const;

  PythonObject object_;
  LayerTable layers_;
  const Dataset<T>* bound_ = nullptr;
  std::size_t least_rows_ = 1;  // of a gradient
};

extern template class PythonModel<float>;
extern template class PythonModel<double>;

}  // namespace fl::python
