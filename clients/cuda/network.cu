#include <algorithm>
#include <utility>

#include "clients/cuda/network.hpp"

namespace fl::cuda {

template <class T>
std::unique_ptr<DeviceLayer<T>> make_device_layer(const NetworkForm::Layer& layer) {
  struct Make {
    const NetworkForm::Layer& layer;
    std::unique_ptr<DeviceLayer<T>> operator()(const form::Dense& form) const { return make_dense<T>(form); }
    std::unique_ptr<DeviceLayer<T>> operator()(const form::Convolution& form) const { return make_convolution<T>(form); }
    std::unique_ptr<DeviceLayer<T>> operator()(const form::Pooling& form) const { return make_pooling<T>(form); }
    std::unique_ptr<DeviceLayer<T>> operator()(const form::Elementwise& form) const { return make_elementwise<T>(form, layer.inputs); }
    std::unique_ptr<DeviceLayer<T>> operator()(const form::Dropout& form) const { return make_dropout<T>(form, layer); }
    std::unique_ptr<DeviceLayer<T>> operator()(const form::Flatten&) const { return nullptr; }
  };
  return std::visit(Make{layer}, layer.form);
}

template <class T>
DeviceNetwork<T>::DeviceNetwork(const NetworkForm& form) : inputs_(form.layers.front().inputs), outputs_(form.layers.back().outputs) {
  widest_ = inputs_;
  for (const NetworkForm::Layer& one : form.layers) {
    widest_ = std::max(widest_, one.outputs);
    draws_ = draws_ || std::holds_alternative<form::Dropout>(one.form);
    std::unique_ptr<DeviceLayer<T>> layer = make_device_layer<T>(one);
    if (layer == nullptr) continue;  // the same numbers under another shape
    const bool is_wanted = !layers_.empty() && layers_.back().layer->needs_output();
    const bool in_place = layer->works_in_place() && !layer->needs_input() && !is_wanted;
    layers_.push_back({std::move(layer), one.begin, one.outputs, in_place});
  }
}

template <class T>
std::size_t DeviceNetwork<T>::entries_per_example() const {
  std::size_t entries = inputs_ + 2 * widest_;
  for (const Placed& one : layers_) entries += one.in_place ? 0 : one.outputs;
  return entries;
}

template <class T>
typename DeviceNetwork<T>::Tape DeviceNetwork<T>::open(Workspace::Frame& frame, std::size_t examples) const {
  Tape tape{{frame.take<T>(examples * inputs_)}, {}};
  for (const Placed& one : layers_)
    tape.activation.push_back(one.in_place ? tape.activation.back() : frame.take<T>(examples * one.outputs));
  for (T*& slope : tape.slope) slope = frame.take<T>(examples * widest_);
  return tape;
}

template <class T>
typename DeviceNetwork<T>::Tape DeviceNetwork<T>::open_forward(Workspace::Frame& frame, std::size_t examples) const {
  T* turns[2] = {frame.take<T>(examples * widest_), frame.take<T>(examples * widest_)};
  Tape tape{{turns[0]}, {}};
  for (const Placed& one : layers_)
    tape.activation.push_back(one.in_place ? tape.activation.back() : tape.activation.back() == turns[0] ? turns[1] : turns[0]);
  return tape;
}

template <class T>
T* DeviceNetwork<T>::forward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape) const {
  for (std::size_t i = 0; i < layers_.size(); ++i)
    layers_[i].layer->forward(pass, {w.data + layers_[i].begin, w.stride}, tape.activation[i], tape.activation[i + 1]);
  return tape.activation.back();
}

template <class T>
void DeviceNetwork<T>::backward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape, LayerSlopes<T> d_w) const {
  T *d = tape.slope[0], *other = tape.slope[1];
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Placed& one = layers_[i];
    const bool is_wanted = i > 0 && one.begin > 0;  // some layer below has weights
    T* by_input = !is_wanted ? nullptr : one.layer->works_in_place() ? d : other;
    one.layer->backward(pass, {w.data + one.begin, w.stride}, tape.activation[i], tape.activation[i + 1], d, by_input,
                        {d_w.data + one.begin, d_w.stride});
    if (!is_wanted) return;
    if (by_input == other) std::swap(d, other);
  }
}

template class DeviceNetwork<float>;
template class DeviceNetwork<double>;

}  // namespace fl::cuda
