// A network on a GPU. It runs many clients' minibatches forward and backward; each client has its own weights, or all share the same.
#pragma once

#include <memory>
#include <vector>

#include "clients/cuda/layer.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::cuda {

// The owner of a network's input: the network, which may overwrite it, or other code, which reads it afterwards.
enum class NetworkInput { own, of_others };

template <class T>
class DeviceNetwork {
 public:
  explicit DeviceNetwork(const NetworkForm& form, NetworkInput input = NetworkInput::own);

  // The memory of a pass over up to `examples` examples. activation[0] is the input, activation[i] the output of layer i-1; several of them
  // may share memory. saved[i] holds what layer i leaves for backward.
  struct Tape {
    std::vector<T*> activation, saved;
    T* slope[2] = {};
  };
  [[nodiscard]] Tape open(Workspace::Frame& frame, std::size_t examples) const;
  // Opens a tape for forward alone, in which two buffers alternate. `input`, unless null, is the first activation.
  [[nodiscard]] Tape open_forward(Workspace::Frame& frame, std::size_t examples, const T* input = nullptr) const;
  // Returns the tape of a network inside a layer, with the given `input`. `memory` has kept_size(examples) entries and holds everything
  // that backward reads. The tape has no slopes.
  [[nodiscard]] Tape keep(T* memory, std::size_t examples, const T* input) const;
  [[nodiscard]] std::size_t kept_size(std::size_t examples) const;
  void take_slopes(Workspace::Frame& frame, std::size_t examples, Tape& tape) const;
  // Returns the entries that open() takes per example, plus the approximate temporary entries of a pass.
  [[nodiscard]] std::size_t entries_per_example() const { return inputs_ + kept_size(1) + room_size(1); }
  // Returns the entries of two slopes and of the layers' temporary memory.
  [[nodiscard]] std::size_t room_size(std::size_t examples) const;

  [[nodiscard]] std::size_t inputs() const { return inputs_; }
  [[nodiscard]] std::size_t outputs() const { return outputs_; }
  [[nodiscard]] std::size_t widest() const { return widest_; }  // entries of an example's largest activation
  [[nodiscard]] std::size_t size() const { return size_; }      // parameters
  [[nodiscard]] bool draws() const { return draws_; }           // whether passes need random numbers
  [[nodiscard]] std::size_t num_kernels() const;                // approximate number that a forward and a backward pass start

  // Computes all activations from tape.activation[0] on and returns the last one.
  T* forward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape) const;
  // Computes the gradient by the weights, and d_in unless it is null, from the derivative by the last activation, which must lie in
  // slope_of_output(tape).
  void backward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape, const GradientStore<T>& by_weights, T* d_in = nullptr) const;
  [[nodiscard]] T* slope_of_output(const Tape& tape) const { return tape.slope[0]; }

 private:
  struct Placed {
    std::unique_ptr<DeviceLayer<T>> layer;
    std::vector<const DeviceNetwork*> inside;
    std::size_t kept, room;  // per example, as the layer's form states them
    std::size_t begin, outputs;
    bool in_place;  // the output uses the input's memory
    [[nodiscard]] std::size_t saved_size(std::size_t examples) const;
  };
  template <class Take>
  [[nodiscard]] Tape lay_out(std::size_t examples, T* input, const Take& take) const;

  std::vector<Placed> layers_;
  std::size_t inputs_ = 0, outputs_ = 0, size_ = 0, widest_ = 0;
  bool draws_ = false;
};

extern template class DeviceNetwork<float>;
extern template class DeviceNetwork<double>;

}  // namespace fl::cuda
