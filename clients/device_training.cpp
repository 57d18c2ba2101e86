#include "clients/device_training.hpp"

#if defined(FL_WITH_CUDA)
#include "clients/cuda/training.hpp"
#endif

namespace fl {

template <class T>
std::unique_ptr<DeviceTraining<T>> make_device_training([[maybe_unused]] const LocalUpdate<T>& local_update,
                                                        [[maybe_unused]] const GradientOracle<T>& oracle,
                                                        [[maybe_unused]] MatrixProducts products) {
#if defined(FL_WITH_CUDA)
  const std::optional<Descent> descent = local_update.descent();
  const std::optional<NetworkForm> form = oracle.model().as_form();
  const Dataset<T>* data = oracle.model().training_data();
  if (!descent || !form || data == nullptr || !cuda::can_lie_on_device(*data)) return nullptr;
  require_cuda_halves(*form, kPrecisionOf<T>);
  return cuda::make_training<T>(*descent, *form, *data, oracle, products);
#else
  return nullptr;
#endif
}

template std::unique_ptr<DeviceTraining<float>> make_device_training(const LocalUpdate<float>&, const GradientOracle<float>&,
                                                                     MatrixProducts);
template std::unique_ptr<DeviceTraining<double>> make_device_training(const LocalUpdate<double>&, const GradientOracle<double>&,
                                                                      MatrixProducts);

}  // namespace fl
