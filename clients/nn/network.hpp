// A sequence of layers over a flat parameter vector w [P], for one client's minibatch at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clients/learning/network_form.hpp"
#include "clients/nn/layer_text.hpp"
#include "clients/nn/module.hpp"

namespace fl::nn {

// The memory of a pass over up to B examples: activation[0] is the input, activation[i] the output of layer i-1.
template <class T>
struct Tape {
  T** activation = nullptr;  // [layers + 1]
  T** saved = nullptr;       // [layers]
  T* slope[2] = {};          // derivatives by two neighbouring activations
};

template <class T>
class FL_API Network {
 public:
  Network() = default;
  // Throws ConfigError for layers that cannot be read or do not fit together; the error names the layer and its position.
  Network(const std::vector<std::string>& layers, const Shape& input, const DataNames& names);

  [[nodiscard]] std::size_t size() const { return P_; }  // parameters
  [[nodiscard]] const Shape& input() const { return shapes_.front(); }
  [[nodiscard]] const Shape& output() const { return shapes_.back(); }
  // Returns its layers by name with plain numbers, unless one of them leaves its data to the CPU.
  [[nodiscard]] std::optional<NetworkForm> as_form() const;
  // Returns the cost of each layer for an example, as a stretch of the network's parameters, or no value if a layer states none. The
  // derivative by the input is counted from the second layer with weights on.
  [[nodiscard]] std::optional<std::vector<StretchCost>> stretches() const;
  // Returns the cost of all layers together.
  [[nodiscard]] std::optional<LayerCost> cost() const;
  [[nodiscard]] std::vector<Layer> tensors(const std::string& prefix = "") const;  // "1.dense.weight"
  void initial(RandomSequence& random, T* w) const;

  // Opens a tape for forward and backward that keeps everything.
  [[nodiscard]] Tape<T> open(Workspace::Frame& frame, std::size_t B) const;
  // Opens a tape whose activations after the input and whose layers' numbers lie in `kept` [kept_size(B)]. Its input is only read. It has
  // slopes if `with_slopes`; the same memory then holds what an earlier forward without them left.
  [[nodiscard]] Tape<T> open_kept(Workspace::Frame& frame, std::size_t B, const T* in, T* kept, bool with_slopes) const;
  [[nodiscard]] std::size_t kept_size(std::size_t B) const;
  // Opens a tape for forward alone, in which two buffers alternate.
  [[nodiscard]] Tape<T> open_forward(Workspace::Frame& frame, std::size_t B) const;
  // Computes all activations from tape.activation[0] on and returns the last one.
  T* forward(const Pass& pass, const T* w, const Tape<T>& tape) const;
  // Computes d_w [P] from the derivative by the last activation, which must lie in slope_of_output(tape), and d_in [B,n] by the input
  // unless null.
  void backward(const Pass& pass, const T* w, const Tape<T>& tape, T* d_in, T* d_w) const;
  [[nodiscard]] T* slope_of_output(const Tape<T>& tape) const { return tape.slope[modules_.size() % 2]; }
  // Returns the entries that open() takes for B examples, plus the layers' temporary entries; without those in kept_size() if `is_kept`.
  [[nodiscard]] std::size_t room_size(std::size_t B, bool is_kept = false) const;
  // Returns the fewest examples of a minibatch in training.
  [[nodiscard]] std::size_t least_examples() const;
  // Returns the entries of the largest activation of one example.
  [[nodiscard]] std::size_t largest() const { return largest_; }

 private:
  void pool_before_relu(std::size_t relu, const std::vector<std::string>& layers, const DataNames& names);
  [[nodiscard]] Pass pass_of(const Pass& pass, std::size_t layer) const;
  std::vector<std::unique_ptr<Module<T>>> modules_;
  std::vector<std::string> names_;   // of layers: "dense"
  std::vector<Shape> shapes_;        // [layers + 1]
  std::vector<std::size_t> begins_;  // of the layers' parameters
  std::size_t P_ = 0, largest_ = 0;
};

extern template class Network<float>;
extern template class Network<double>;

}  // namespace fl::nn
