// Where parameters lie that are not plain weights of all clients: running averages, and those that are not shared.
//
// Vectors have the order of the model, and layers on a GPU an order of their own, in which running averages come last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "clients/cuda/device_data.cuh"
#include "clients/cuda/optimizer_steps.hpp"
#include "clients/learning/network_form.hpp"
#include "clients/learning/weights_first.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "fl_core/message/parameter_kinds.hpp"

namespace fl::cuda {

// Parameters that are not shared: their positions in the layers' order [U], and the position of each parameter in the order of vectors [P].
// A pointer is null for models without such parameters, or with one order.
template <class T>
struct PlacedEntries {
  const std::uint32_t *at = nullptr, *place_of = nullptr;
  const T* rate = nullptr;                    // [U] above 0 at running averages
  const std::uint8_t* is_unshared = nullptr;  // [P] in the layers' order
  std::size_t U = 0;
};

template <class T>
class ParameterPlaces {
 public:
  ParameterPlaces(const NetworkForm& form, const ParameterKinds& kinds)
      : order_(order_of_layers(form)), keeps_weights_(kinds.keeps_weights()) {
    if (!form.running_averages.empty()) place_averages(form);
    if (!kinds.unshared.empty()) place_own(kinds);
  }

  // Returns the position in the order of layers of the parameter at each place of vectors, [P].
  [[nodiscard]] std::span<const std::uint32_t> layer_order() const { return order_; }
  // Returns ParameterKinds::keeps_weights.
  [[nodiscard]] bool keeps_weights() const { return keeps_weights_; }
  // Returns Layer::running_rate of each parameter [P], in the layers' order; null without running averages.
  [[nodiscard]] const T* rate() const { return pointer_to(rate_); }
  [[nodiscard]] PlacedEntries<T> entries() const {
    return {pointer_to(own_at_), pointer_to(place_of_), pointer_to(own_rate_), pointer_to(is_unshared_), own_at_.size()};
  }
  [[nodiscard]] PlacedAverages<T> averages() const {
    return {pointer_to(average_at_), pointer_to(place_of_), pointer_to(rate_), average_at_.size()};
  }
  [[nodiscard]] std::size_t size_bytes() const {
    return (rate_.size() + own_rate_.size()) * sizeof(T) + is_unshared_.size() +
           (place_of_.size() + average_at_.size() + own_at_.size()) * sizeof(std::uint32_t);
  }

 private:
  static std::vector<std::uint32_t> order_of_layers(const NetworkForm& form) {
    std::vector<std::uint32_t> layers(form.size), at(form.size);
    std::iota(layers.begin(), layers.end(), 0u);
    put_weights_first<std::uint32_t>(form.running_averages, form.size, layers.data(), at.data());
    return at;
  }
  void place_averages(const NetworkForm& form) {
    std::vector<std::uint32_t> place_of(form.size), average_at;
    for (std::uint32_t place = 0; place < form.size; ++place) place_of[order_[place]] = place;
    std::vector<T> rate(form.size);
    for (const ParameterRange& average : form.running_averages)
      for (std::size_t j = average.begin; j < average.end; ++j) {
        rate[j] = static_cast<T>(average.running_rate);
        average_at.push_back(static_cast<std::uint32_t>(j));
      }
    keep(rate_, std::span<const T>(rate));
    keep(place_of_, std::span<const std::uint32_t>(place_of));
    keep(average_at_, std::span<const std::uint32_t>(average_at));
  }
  void place_own(const ParameterKinds& kinds) {
    std::vector<std::uint32_t> own_at;
    std::vector<T> own_rate;
    std::vector<std::uint8_t> is_unshared(order_.size());
    kinds.for_each_own_range([&](const ParameterRange& range, std::size_t) {
      for (std::size_t j = range.begin; j < range.end; ++j) {
        own_at.push_back(order_[j]);
        own_rate.push_back(static_cast<T>(range.running_rate));
        is_unshared[order_[j]] = 1;
      }
    });
    keep(own_at_, std::span<const std::uint32_t>(own_at));
    keep(own_rate_, std::span<const T>(own_rate));
    keep(is_unshared_, std::span<const std::uint8_t>(is_unshared));
  }
  template <class U>
  [[nodiscard]] static const U* pointer_to(const Buffer<U>& buffer) {
    return buffer.empty() ? nullptr : buffer.data();
  }

  std::vector<std::uint32_t> order_;  // on the host
  bool keeps_weights_;
  Buffer<T> rate_;                    // [P]
  Buffer<std::uint32_t> place_of_;    // [P] of PlacedEntries, if the model has running averages
  Buffer<std::uint32_t> average_at_;  // [S] of PlacedAverages
  Buffer<std::uint32_t> own_at_;      // [U] of PlacedEntries
  Buffer<T> own_rate_;                // [U]
  Buffer<std::uint8_t> is_unshared_;  // [P]
};

}  // namespace fl::cuda
