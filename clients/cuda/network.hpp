// A network on a GPU: many clients' minibatches forward and backward, every client with weights of its own or all with the same.
#pragma once

#include <memory>
#include <vector>

#include "clients/cuda/layer.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::cuda {

// Whose memory a network's input is: one that it may write over, or one that others read afterwards.
enum class NetworkInput { own, of_others };

template <class T>
class DeviceNetwork {
 public:
  explicit DeviceNetwork(const NetworkForm& form, NetworkInput input = NetworkInput::own);

  // Where a pass over up to `examples` examples works: activation[0] is the input, activation[i] what layer i-1 made of it; some of them
  // are the same memory. saved[i] is what layer i left for backward.
  struct Tape {
    std::vector<T*> activation, saved;
    T* slope[2] = {};
  };
  [[nodiscard]] Tape open(Workspace::Frame& frame, std::size_t examples) const;
  // For forward alone: two stretches take turns. `input` unless null is the first activation.
  [[nodiscard]] Tape open_forward(Workspace::Frame& frame, std::size_t examples, const T* input = nullptr) const;
  // For a network inside of a layer: `input`, and all that backward reads in `memory` of kept_size(examples) entries; no slopes.
  [[nodiscard]] Tape keep(T* memory, std::size_t examples, const T* input) const;
  [[nodiscard]] std::size_t kept_size(std::size_t examples) const;
  void take_slopes(Workspace::Frame& frame, std::size_t examples, Tape& tape) const;
  // Entries that open() takes for an example, and about what a pass takes besides.
  [[nodiscard]] std::size_t entries_per_example() const { return inputs_ + kept_size(1) + room_size(1); }
  // Entries of two slopes and of what layers take.
  [[nodiscard]] std::size_t room_size(std::size_t examples) const;

  [[nodiscard]] std::size_t inputs() const { return inputs_; }
  [[nodiscard]] std::size_t outputs() const { return outputs_; }
  [[nodiscard]] std::size_t widest() const { return widest_; }  // entries of the largest activation of an example
  [[nodiscard]] std::size_t size() const { return size_; }      // parameters
  [[nodiscard]] bool draws() const { return draws_; }           // whether passes need random numbers
  [[nodiscard]] std::size_t num_kernels() const;                // about how many a pass forward and back starts

  // From tape.activation[0] to the last activation, which is returned.
  T* forward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape) const;
  // The gradient by the weights, and d_in unless null, from the derivative by the last activation, which must lie in
  // slope_of_output(tape).
  void backward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape, const GradientStore<T>& by_weights, T* d_in = nullptr) const;
  [[nodiscard]] T* slope_of_output(const Tape& tape) const { return tape.slope[0]; }

 private:
  struct Placed {
    std::unique_ptr<DeviceLayer<T>> layer;
    std::vector<const DeviceNetwork*> inside;
    std::size_t kept, room;  // of an example, as the layer's form states them
    std::size_t begin, outputs;
    bool in_place;  // its output is its input's memory
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
