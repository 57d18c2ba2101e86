// The CUDA half of the clients in builds without CUDA: data cannot lie on a GPU, so nothing trains or is evaluated there. CMake links this
// file instead of clients/cuda/ (fedbits_part in cmake/FedbitsParts.cmake).
#include "clients/cuda/evaluation.hpp"
#include "clients/cuda/training.hpp"

namespace fl::cuda {

template <class T>
bool can_lie_on_device(const Dataset<T>&) {
  return false;
}
template <class T>
std::unique_ptr<DeviceEvaluation<T>> make_evaluation(const NetworkForm&, std::size_t, const Dataset<T>&) {
  return nullptr;
}
template <class T>
std::unique_ptr<DeviceTraining<T>> make_training(const Descent&, const NetworkForm&, const Dataset<T>&, const GradientOracle<T>&,
                                                 MatrixProducts, const ParameterKinds&, const LocalOptimizer<T>*) {
  return nullptr;
}

template bool can_lie_on_device(const Dataset<float>&);
template bool can_lie_on_device(const Dataset<double>&);
template std::unique_ptr<DeviceEvaluation<float>> make_evaluation(const NetworkForm&, std::size_t, const Dataset<float>&);
template std::unique_ptr<DeviceEvaluation<double>> make_evaluation(const NetworkForm&, std::size_t, const Dataset<double>&);
template std::unique_ptr<DeviceTraining<float>> make_training(const Descent&, const NetworkForm&, const Dataset<float>&,
                                                              const GradientOracle<float>&, MatrixProducts, const ParameterKinds&,
                                                              const LocalOptimizer<float>*);
template std::unique_ptr<DeviceTraining<double>> make_training(const Descent&, const NetworkForm&, const Dataset<double>&,
                                                               const GradientOracle<double>&, MatrixProducts, const ParameterKinds&,
                                                               const LocalOptimizer<double>*);

}  // namespace fl::cuda
