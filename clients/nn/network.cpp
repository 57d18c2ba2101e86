#include "clients/nn/network.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fl::nn {

namespace {

constexpr std::size_t kMostNumbers = 0xFFFFFFFF;  // entries of an activation, and parameters: what 32 bits number

// Throws ConfigError where a layer's output, or the parameters up to it, are more than positions of messages can number. Before the first
// layer that is too large no product of sizes leaves 64 bits.
void check_size(std::size_t outputs, std::size_t parameters, std::size_t entry_bytes) {
  const std::size_t most = std::max(outputs, parameters);
  if (most <= kMostNumbers) return;
  char gigabytes[32];
  std::snprintf(gigabytes, sizeof gigabytes, "%.4g", static_cast<double>(most) * static_cast<double>(entry_bytes) / 1e9);
  throw ConfigError("would have " + std::to_string(most) + (parameters > kMostNumbers ? " parameters" : " outputs per example") +
                    " with the layers before it, which take " + gigabytes + " GB; at most " + std::to_string(kMostNumbers) +
                    " are possible");
}

// Entries up to the next cache line.
std::size_t aligned(std::size_t entries) { return (entries + 15) / 16 * 16; }

}  // namespace

template <class T>
Network<T>::Network(const std::vector<std::string>& layers, const Shape& input, const DataNames& names) : shapes_{input} {
  largest_ = input.size();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    modules_.push_back(make_layer<T>(layers[i], names));
    names_.push_back(layers[i].substr(0, layers[i].find('(')));
    try {
      shapes_.push_back(modules_.back()->bind(shapes_.back()));
      begins_.push_back(P_);
      P_ += num_parameters(*modules_.back());
      check_size(shapes_.back().size(), P_, sizeof(T));
    } catch (const ConfigError& error) {
      throw ConfigError("layer " + std::to_string(i + 1) + ", \"" + shown_layer(layers[i]) + "\": " + error.what());
    }
    largest_ = std::max(largest_, shapes_.back().size());
    if (i > 0 && names_[i - 1] == "relu" && names_[i] == "max_pool") pool_before_relu(i - 1, layers, names);
  }
}

// The largest entry of a window is the same before and after max(x, 0), and so is where its derivative goes; but what is left after
// pooling is a quarter or less.
template <class T>
void Network<T>::pool_before_relu(std::size_t relu, const std::vector<std::string>& layers, const DataNames& names) {
  modules_[relu] = make_layer<T>(layers[relu + 1], names);
  modules_[relu + 1] = make_layer<T>(layers[relu], names);
  shapes_[relu + 1] = modules_[relu]->bind(shapes_[relu]);
  shapes_[relu + 2] = modules_[relu + 1]->bind(shapes_[relu + 1]);
}

template <class T>
std::optional<NetworkForm> Network<T>::as_form() const {
  if (modules_.empty()) return std::nullopt;
  NetworkForm network;
  network.size = P_;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    std::optional<LayerForm> layer = modules_[i]->as_form();
    if (!layer) return std::nullopt;
    layer->name = modules_[i]->name();
    network.layers.push_back({std::move(*layer), begins_[i], shapes_[i].size(), shapes_[i + 1].size(), static_cast<std::uint32_t>(i)});
  }
  return network;
}

template <class T>
std::optional<std::vector<StretchCost>> Network<T>::stretches() const {
  std::vector<StretchCost> all;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const std::optional<LayerCost> layer = modules_[i]->cost();
    if (!layer) return std::nullopt;
    const std::size_t end = i + 1 < modules_.size() ? begins_[i + 1] : P_;
    all.push_back({.begin = begins_[i], .end = end, .forward = layer->forward, .backward = layer->by_weights});
    if (begins_[i] > 0) all.back().backward += layer->by_input;
  }
  return all;
}

template <class T>
std::optional<LayerCost> Network<T>::cost() const {
  LayerCost sum;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const std::optional<LayerCost> layer = modules_[i]->cost();
    if (!layer) return std::nullopt;
    sum.forward += layer->forward;
    sum.by_weights += layer->by_weights;
    (begins_[i] > 0 ? sum.by_weights : sum.by_input) += layer->by_input;
  }
  return sum;
}

template <class T>
std::vector<Layer> Network<T>::tensors(const std::string& prefix) const {
  std::vector<Layer> all;
  for (std::size_t i = 0; i < modules_.size(); ++i)
    for (Layer tensor : modules_[i]->tensors()) {
      tensor.name = prefix + std::to_string(i + 1) + "." + names_[i] + "." + tensor.name;
      tensor.begin += begins_[i];
      all.push_back(std::move(tensor));
    }
  return all;
}

template <class T>
void Network<T>::initial(RandomSequence& random, T* w) const {
  for (std::size_t i = 0; i < modules_.size(); ++i) modules_[i]->initial(random, w + begins_[i]);
}

template <class T>
Tape<T> Network<T>::open(Workspace::Frame& frame, std::size_t B) const {
  Tape<T> tape{frame.take<T*>(modules_.size() + 1), frame.take<T*>(modules_.size() + 1), {}};
  for (std::size_t i = 0; i <= modules_.size(); ++i) tape.activation[i] = frame.take<T>(B * shapes_[i].size());
  for (std::size_t i = 0; i < modules_.size(); ++i) tape.saved[i] = frame.take<T>(modules_[i]->saved_size(B));
  for (T*& slope : tape.slope) slope = frame.take<T>(B * largest_);
  return tape;
}

template <class T>
Tape<T> Network<T>::open_kept(Workspace::Frame& frame, std::size_t B, const T* in, T* kept, bool with_slopes) const {
  Tape<T> tape{frame.take<T*>(modules_.size() + 1), frame.take<T*>(modules_.size() + 1), {}};
  const auto next = [&kept](std::size_t entries) { return std::exchange(kept, kept + aligned(entries)); };
  tape.activation[0] = const_cast<T*>(in);
  for (std::size_t i = 1; i <= modules_.size(); ++i) tape.activation[i] = next(B * shapes_[i].size());
  for (std::size_t i = 0; i < modules_.size(); ++i) tape.saved[i] = next(modules_[i]->saved_size(B));
  for (T*& slope : tape.slope) slope = with_slopes ? frame.take<T>(B * largest_) : nullptr;
  return tape;
}

template <class T>
std::size_t Network<T>::kept_size(std::size_t B) const {
  std::size_t entries = 0;
  for (std::size_t i = 1; i <= modules_.size(); ++i) entries += aligned(B * shapes_[i].size());
  for (const auto& layer : modules_) entries += aligned(layer->saved_size(B));
  return entries;
}

template <class T>
std::size_t Network<T>::room_size(std::size_t B, bool is_kept) const {
  std::size_t entries = 2 * B * largest_, most = 0;
  for (const Shape& shape : shapes_) entries += is_kept ? 0 : B * shape.size();
  for (const auto& layer : modules_) {
    entries += is_kept ? 0 : layer->saved_size(B);
    most = std::max(most, layer->room_size(B));
  }
  return entries + most;
}

template <class T>
std::size_t Network<T>::least_examples() const {
  std::size_t least = 1;
  for (const auto& layer : modules_) least = std::max(least, layer->least_examples());
  return least;
}

template <class T>
Tape<T> Network<T>::open_forward(Workspace::Frame& frame, std::size_t B) const {
  Tape<T> tape{frame.take<T*>(modules_.size() + 1), frame.take<T*>(modules_.size() + 1), {}};
  T* turns[2] = {frame.take<T>(B * largest_), frame.take<T>(B * largest_)};
  for (std::size_t i = 0; i <= modules_.size(); ++i) tape.activation[i] = turns[i % 2];
  std::size_t most = 0;
  for (const auto& layer : modules_) most = std::max(most, layer->saved_size(B));
  std::fill_n(tape.saved, modules_.size(), frame.take<T>(most));
  return tape;
}

template <class T>
Pass Network<T>::pass_of(const Pass& pass, std::size_t layer) const {
  Pass own = pass;
  own.random.step_layer += static_cast<std::uint32_t>(layer);
  return own;
}

template <class T>
T* Network<T>::forward(const Pass& pass, const T* w, const Tape<T>& tape) const {
  for (std::size_t i = 0; i < modules_.size(); ++i)
    modules_[i]->forward(pass_of(pass, i), w + begins_[i], tape.activation[i], tape.activation[i + 1], tape.saved[i]);
  return tape.activation[modules_.size()];
}

template <class T>
void Network<T>::backward(const Pass& pass, const T* w, const Tape<T>& tape, T* d_in, T* d_w) const {
  for (std::size_t i = modules_.size(); i-- > 0;) {
    // The derivative by the network's input is wanted only where a network holds this one; layers below the first with weights need none.
    T* by_input = i > 0 ? (begins_[i] > 0 || d_in != nullptr ? tape.slope[i % 2] : nullptr) : d_in;
    modules_[i]->backward(pass_of(pass, i), w + begins_[i], tape.activation[i], tape.activation[i + 1], tape.saved[i],
                          tape.slope[(i + 1) % 2], by_input, d_w + begins_[i]);
  }
}

template class Network<float>;
template class Network<double>;

}  // namespace fl::nn
