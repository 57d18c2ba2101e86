// A network on a GPU: many clients' minibatches forward and backward, every client with weights of its own or all with the same.
#pragma once

#include <memory>
#include <vector>

#include "clients/cuda/layer.hpp"
#include "fl_core/workspace.hpp"

namespace fl::cuda {

template <class T>
class DeviceNetwork {
 public:
  explicit DeviceNetwork(const NetworkForm& form);

  // Where a pass over up to `examples` examples works: activation[0] is the input, activation[i] what layer i-1 made of it; some of them
  // are the same memory.
  struct Tape {
    std::vector<T*> activation;
    T* slope[2] = {};
  };
  [[nodiscard]] Tape open(Workspace::Frame& frame, std::size_t examples) const;
  // For forward alone: two stretches take turns.
  [[nodiscard]] Tape open_forward(Workspace::Frame& frame, std::size_t examples) const;
  // Entries that open() takes for an example.
  [[nodiscard]] std::size_t entries_per_example() const;

  [[nodiscard]] std::size_t inputs() const { return inputs_; }
  [[nodiscard]] std::size_t outputs() const { return outputs_; }
  [[nodiscard]] bool draws() const { return draws_; }  // whether passes need random numbers

  // From tape.activation[0] to the last activation, which is returned.
  T* forward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape) const;
  // d_w from the derivative by the last activation, which must lie in slope_of_output(tape).
  void backward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape, LayerSlopes<T> d_w) const;
  [[nodiscard]] T* slope_of_output(const Tape& tape) const { return tape.slope[0]; }

 private:
  struct Placed {
    std::unique_ptr<DeviceLayer<T>> layer;
    std::size_t begin, outputs;
    bool in_place;  // its output is its input's memory
  };
  std::vector<Placed> layers_;
  std::size_t inputs_ = 0, outputs_ = 0, widest_ = 0;
  bool draws_ = false;
};

extern template class DeviceNetwork<float>;
extern template class DeviceNetwork<double>;

}  // namespace fl::cuda
