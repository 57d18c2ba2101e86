#include "clients/learning/device_training.hpp"

#include "clients/cuda/training.hpp"

namespace fl {

template <class T>
std::unique_ptr<DeviceTraining<T>> make_device_training(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle,
                                                        MatrixProducts products, const ParameterKinds& kinds) {
  const std::optional<Descent> descent = local_update.descent();
  const std::optional<NetworkForm> form = oracle.model().as_form();
  const Dataset<T>* data = oracle.model().training_data();
  if (!descent || !form || data == nullptr || !cuda::can_lie_on_device(*data)) return nullptr;
  const LocalOptimizer<T>* optimizer = descent->by_optimizer ? local_update.optimizer(Device::cuda) : nullptr;
  if (descent->by_optimizer && optimizer == nullptr) return nullptr;
  require_cuda_halves(*form, kPrecisionOf<T>);
  return cuda::make_training<T>(*descent, *form, *data, oracle, products, kinds, optimizer);
}

template std::unique_ptr<DeviceTraining<float>> make_device_training(const LocalUpdate<float>&, const GradientOracle<float>&,
                                                                     MatrixProducts, const ParameterKinds&);
template std::unique_ptr<DeviceTraining<double>> make_device_training(const LocalUpdate<double>&, const GradientOracle<double>&,
                                                                      MatrixProducts, const ParameterKinds&);

}  // namespace fl
