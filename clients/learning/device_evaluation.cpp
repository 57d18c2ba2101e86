#include "clients/learning/device_evaluation.hpp"

#include "clients/cuda/evaluation.hpp"
#include "clients/cuda/training.hpp"

namespace fl {

template <class T>
std::unique_ptr<DeviceEvaluation<T>> make_device_evaluation(const Model<T>& model, const Dataset<T>& data) {
  // Kernels do not check the length of a row. If it differs from that of the model's data, the CPU reports the error.
  const std::optional<NetworkForm> form = model.as_form();
  const Dataset<T>* bound = model.training_data();
  const bool fits = bound != nullptr && data.num_features == bound->num_features && data.labels_per_row() == bound->labels_per_row();
  if (!form || !fits || !cuda::can_lie_on_device(data)) return nullptr;
  require_cuda_halves(*form, kPrecisionOf<T>);
  return cuda::make_evaluation<T>(*form, model.layers().size(), data);
}

template std::unique_ptr<DeviceEvaluation<float>> make_device_evaluation(const Model<float>&, const Dataset<float>&);
template std::unique_ptr<DeviceEvaluation<double>> make_device_evaluation(const Model<double>&, const Dataset<double>&);

}  // namespace fl
