#include "clients/device_training.hpp"

#if defined(FL_WITH_CUDA)
#include "clients/cuda/dense_training.hpp"
#endif

namespace fl {

template <class T>
std::unique_ptr<DeviceTraining<T>> make_device_training([[maybe_unused]] const LocalUpdate<T>& local_update,
                                                        [[maybe_unused]] const GradientOracle<T>& oracle) {
#if defined(FL_WITH_CUDA)
  const std::optional<Descent> descent = local_update.descent();
  const std::optional<DenseNetwork> network = oracle.model().as_dense_network();
  const Dataset<T>* data = oracle.model().training_data();
  if (descent && network && data != nullptr && cuda::can_train_on(*data))
    return cuda::make_dense_training<T>(*descent, *network, *data, oracle);
#endif
  return nullptr;
}

template std::unique_ptr<DeviceTraining<float>> make_device_training(const LocalUpdate<float>&, const GradientOracle<float>&);
template std::unique_ptr<DeviceTraining<double>> make_device_training(const LocalUpdate<double>&, const GradientOracle<double>&);

}  // namespace fl
