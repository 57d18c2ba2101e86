// A network inside a layer, for layers that join several networks. Its activations are kept for the backward pass up to a size from which
// computing them again costs less than their memory; the bits are the same. Its random numbers differ from those of the layers around it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clients/nn/network.hpp"

namespace fl::nn {

template <class T>
class Branch {
 public:
  Branch() = default;
  // `salt` distinguishes the branches of one layer.
  Branch(const std::vector<std::string>& layers, const Shape& input, const DataNames& names, std::uint32_t salt)
      : network_(layers, input, names), salt_(salt << 28) {}

  [[nodiscard]] const Network<T>& network() const { return network_; }
  [[nodiscard]] std::size_t size() const { return network_.size(); }
  [[nodiscard]] const Shape& output() const { return network_.output(); }

  // Returns the entries that forward leaves for backward, and the temporary ones of either.
  [[nodiscard]] std::size_t saved_size(std::size_t B) const { return std::min(network_.kept_size(B), kMostKept); }
  [[nodiscard]] std::size_t room_size(std::size_t B) const { return network_.room_size(B, is_kept(B)); }
  [[nodiscard]] std::size_t least_examples() const { return network_.least_examples(); }

  // Calls use(z) with z [B,n_out] computed from `in`.
  template <class Use>
  void forward(const Pass& pass, const T* w, const T* in, T* saved, const Use& use) const {
    Workspace::Frame frame(*pass.exec.workspace);
    const Tape<T> tape = open(frame, pass.B, in, saved, false);
    use(static_cast<const T*>(network_.forward(salted(pass), w, tape)));
  }
  // Calls fill(d_z), which writes the derivative by the output [B,n_out], and computes d_in [B,n_in], unless null, and d_w.
  template <class Fill>
  void backward(const Pass& pass, const T* w, const T* in, const T* saved, const Fill& fill, T* d_in, T* d_w) const {
    Workspace::Frame frame(*pass.exec.workspace);
    const Tape<T> tape = open(frame, pass.B, in, const_cast<T*>(saved), true);
    if (!is_kept(pass.B)) network_.forward(salted(pass), w, tape);
    fill(network_.slope_of_output(tape));
    network_.backward(salted(pass), w, tape, d_in, d_w);
  }

 private:
  static constexpr std::size_t kMostKept = (std::size_t{128} << 20) / sizeof(T);
  [[nodiscard]] bool is_kept(std::size_t B) const { return network_.kept_size(B) <= kMostKept; }
  Tape<T> open(Workspace::Frame& frame, std::size_t B, const T* in, T* saved, bool with_slopes) const {
    T* kept = is_kept(B) ? saved : frame.take<T>(network_.kept_size(B));
    return network_.open_kept(frame, B, in, kept, with_slopes);
  }
  [[nodiscard]] Pass salted(const Pass& pass) const {
    Pass own = pass;
    own.random.key1 ^= salt_ ^ (pass.random.step_layer << 8);
    return own;
  }
  Network<T> network_;
  std::uint32_t salt_ = 0;  // for the client's part of the counter
};

// Returns the tensors of two branches, one after the other.
template <class T>
[[nodiscard]] std::vector<Layer> tensors_of(const Branch<T>& first, const std::string& first_name, const Branch<T>& second,
                                            const std::string& second_name) {
  std::vector<Layer> tensors = first.network().tensors(first_name + ".");
  for (Layer tensor : second.network().tensors(second_name + ".")) {
    tensor.begin += first.size();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Returns the cost of branches together, or no value if a layer inside states none.
template <class T>
[[nodiscard]] std::optional<LayerCost> cost_of_branches(std::initializer_list<const Branch<T>*> branches) {
  LayerCost sum;
  for (const Branch<T>* branch : branches) {
    const std::optional<LayerCost> one = branch->network().cost();
    if (!one) return std::nullopt;
    sum.forward += one->forward;
    sum.by_weights += one->by_weights;
    sum.by_input += one->by_input;
  }
  return sum;
}

// Returns the form of a layer of branches, unless a layer inside leaves its data to the CPU. The memory of a pass over them is that of the
// largest branch, plus a second derivative by the input.
template <class T>
[[nodiscard]] std::optional<LayerForm> form_of(std::initializer_list<const Branch<T>*> branches) {
  LayerForm form;
  form.memory.room = (*branches.begin())->network().input().size();
  for (const Branch<T>* branch : branches) {
    std::optional<NetworkForm> network = branch->network().as_form();
    if (!network) return std::nullopt;
    form.networks.push_back(std::move(*network));
  }
  return form;
}

}  // namespace fl::nn
