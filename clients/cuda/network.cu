#include <algorithm>
#include <utility>

#include "clients/cuda/network.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

namespace {

// Rounds up to whole cache lines: parts of kept memory begin on cache lines, as the parts of a workspace do.
template <class T>
std::size_t whole_lines(std::size_t entries) {
  constexpr std::size_t kLine = 64 / sizeof(T);
  return (entries + kLine - 1) / kLine * kLine;
}

}  // namespace

template <class T>
DeviceNetwork<T>::DeviceNetwork(const NetworkForm& form, NetworkInput input)
    : inputs_(form.layers.front().inputs), outputs_(form.layers.back().outputs), size_(form.size) {
  widest_ = inputs_;
  for (const NetworkForm::Layer& one : form.layers) {
    widest_ = std::max(widest_, one.outputs);
    std::unique_ptr<DeviceLayer<T>> layer = make_device_layer<T>(one);
    if (layer == nullptr) continue;  // the same numbers under another shape
    draws_ = draws_ || layer->draws();
    const bool is_wanted = layers_.empty() ? input == NetworkInput::of_others : layers_.back().layer->needs_output();
    const bool in_place = layer->works_in_place() && !layer->needs_input() && !is_wanted;
    const std::vector<const DeviceNetwork*> inside = layer->networks();
    layers_.push_back({std::move(layer), inside, one.form.memory.kept, one.form.memory.room, one.begin, one.outputs, in_place});
  }
}

template <class T>
std::size_t DeviceNetwork<T>::Placed::saved_size(std::size_t examples) const {
  std::size_t entries = examples * kept;
  for (const DeviceNetwork* network : inside) entries += network->kept_size(examples);
  return entries;
}

template <class T>
std::size_t DeviceNetwork<T>::kept_size(std::size_t examples) const {
  std::size_t entries = 0;
  for (const Placed& one : layers_)
    entries += (one.in_place ? 0 : whole_lines<T>(examples * one.outputs)) + whole_lines<T>(one.saved_size(examples));
  return entries;
}

template <class T>
std::size_t DeviceNetwork<T>::room_size(std::size_t examples) const {
  std::size_t most = 0;
  for (const Placed& one : layers_) {
    std::size_t inside = 0;
    for (const DeviceNetwork* network : one.inside) inside = std::max(inside, network->room_size(examples));
    most = std::max(most, examples * one.room + inside);
  }
  return 2 * examples * widest_ + most;
}

template <class T>
std::size_t DeviceNetwork<T>::num_kernels() const {
  std::size_t kernels = 0;
  for (const Placed& one : layers_) kernels += one.layer->num_kernels();
  return kernels;
}

// take(entries) returns memory.
template <class T>
template <class Take>
typename DeviceNetwork<T>::Tape DeviceNetwork<T>::lay_out(std::size_t examples, T* input, const Take& take) const {
  Tape tape{{input}, {}, {}};
  for (const Placed& one : layers_) {
    tape.activation.push_back(one.in_place ? tape.activation.back() : take(examples * one.outputs));
    const std::size_t saved = one.saved_size(examples);
    tape.saved.push_back(saved > 0 ? take(saved) : nullptr);
  }
  return tape;
}

template <class T>
typename DeviceNetwork<T>::Tape DeviceNetwork<T>::open(Workspace::Frame& frame, std::size_t examples) const {
  const auto take = [&frame](std::size_t entries) { return frame.take<T>(entries); };
  Tape tape = lay_out(examples, take(examples * inputs_), take);
  take_slopes(frame, examples, tape);
  return tape;
}

template <class T>
typename DeviceNetwork<T>::Tape DeviceNetwork<T>::keep(T* memory, std::size_t examples, const T* input) const {
  // Layers never modify an input that they do not own.
  return lay_out(examples, const_cast<T*>(input), [&memory](std::size_t entries) {
    T* taken = memory;
    memory += whole_lines<T>(entries);
    return taken;
  });
}

template <class T>
void DeviceNetwork<T>::take_slopes(Workspace::Frame& frame, std::size_t examples, Tape& tape) const {
  for (T*& slope : tape.slope) slope = frame.take<T>(examples * widest_);
}

template <class T>
typename DeviceNetwork<T>::Tape DeviceNetwork<T>::open_forward(Workspace::Frame& frame, std::size_t examples, const T* input) const {
  T* turns[2] = {frame.take<T>(examples * widest_), frame.take<T>(examples * widest_)};
  Tape tape{{input == nullptr ? turns[0] : const_cast<T*>(input)}, std::vector<T*>(layers_.size()), {}};
  for (const Placed& one : layers_)
    tape.activation.push_back(one.in_place ? tape.activation.back() : tape.activation.back() == turns[0] ? turns[1] : turns[0]);
  return tape;
}

template <class T>
T* DeviceNetwork<T>::forward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    LayerPass own = pass;
    own.saved = tape.saved[i];
    layers_[i].layer->forward(own, {w.data + layers_[i].begin, w.stride}, tape.activation[i], tape.activation[i + 1]);
  }
  return tape.activation.back();
}

template <class T>
void DeviceNetwork<T>::backward(const LayerPass& pass, LayerWeights<T> w, const Tape& tape, const GradientStore<T>& by_weights,
                                T* d_in) const {
  T *d = tape.slope[0], *other = tape.slope[1];
  if (layers_.empty() && d_in != nullptr)
    FL_CUDA_CHECK(cudaMemcpyAsync(d_in, d, pass.examples() * inputs_ * sizeof(T), cudaMemcpyDeviceToDevice, stream_of(pass.exec)));
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Placed& one = layers_[i];
    const bool is_wanted = d_in != nullptr || (i > 0 && one.begin > 0);  // or an earlier layer has weights
    T* by_input = !is_wanted ? nullptr : i == 0 ? d_in : one.layer->works_in_place() ? d : other;
    LayerPass own = pass;
    own.saved = tape.saved[i];
    one.layer->backward(own, {w.data + one.begin, w.stride}, tape.activation[i], tape.activation[i + 1], d, by_input,
                        by_weights.from(one.begin));
    if (!is_wanted) return;
    if (by_input == other) std::swap(d, other);
  }
}

template class DeviceNetwork<float>;
template class DeviceNetwork<double>;

}  // namespace fl::cuda
