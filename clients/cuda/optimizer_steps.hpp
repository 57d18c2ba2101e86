// The steps of clients on a GPU along gradients that lie in memory, by a local optimizer with a CUDA half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clients/learning/descent.hpp"
#include "clients/learning/local_optimizer.hpp"
#include "clients/learning/optimizer_state.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::cuda {

// The running averages of models: their positions in the layers' order [S], and the position of each parameter in the order of vectors [P].
// All pointers are null for models without any.
template <class T>
struct PlacedAverages {
  const std::uint32_t *at = nullptr, *place_of = nullptr;
  const T* rate = nullptr;  // [P], above 0 at running averages
  std::size_t S = 0;
};

// Returns the tensors of a model in the order of its layers: begin[p] is the position there of the parameter at place p of vectors. An
// empty `begin` says that both orders are one.
[[nodiscard]] LayerTable in_order_of_layers(const LayerTable& layers, std::span<const std::uint32_t> begin);

// A rule with the terms that are added to its gradients.
template <class T>
struct OptimizerParts {
  const LocalOptimizer<T>& rule;
  const Descent& descent;
  const LayerTable& layers;  // in the order of layers
  PlacedAverages<T> averages;
};

// Clients that work at the same time. Their vectors are in the order of layers, and client k is at position place[k] of the block.
template <class T>
class OptimizerSteps {
 public:
  // Begins with vectors of zeros, or with those that the clients keep. w: [P]. The frame's memory is used until close(). Pointers and the
  // rows of `kept` are on the GPU.
  OptimizerSteps(const Exec& exec, const OptimizerParts<T>& parts, const KeptStates<T>& kept, std::size_t clients, const T* w,
                 const std::uint32_t* place, Workspace::Frame& frame);
  // Moves y [clients,P] of the first `clients` clients along their gradients g, which become scratch memory.
  void step(const Exec& exec, std::size_t clients, double gamma, T* g, T* y);
  // Writes the vectors that the clients keep to their shadow rows.
  void close(const Exec& exec);

 private:
  const OptimizerParts<T> parts_;
  const KeptStates<T>& kept_;
  std::size_t clients_, P_;
  const T* w_;
  const std::uint32_t* place_;
  std::vector<BatchView<T>> states_;  // [clients,P] each
  std::vector<std::uint64_t> count_;  // [clients]
  T *averages_, *counts_;             // [clients,S], [clients,2]
};

extern template class OptimizerSteps<float>;
extern template class OptimizerSteps<double>;

}  // namespace fl::cuda
