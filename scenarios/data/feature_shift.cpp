#include "scenarios/data/feature_shift.hpp"

#include <algorithm>
#include <cmath>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/random/random.hpp"

namespace fl {
namespace {

template <class T>
void check(const Dataset<T>& data, std::span<const FeatureShift> shifts) {
  const std::string who = "data set \"" + data.name + "\" ";
  const bool turns = std::ranges::any_of(shifts, [](const FeatureShift& s) { return s.quarter_turns % 4 != 0; });
  if (turns && (data.shape.size() != 3 || data.shape[1] != data.shape[2]))
    throw key_error("partition.kind", who + "has no square images, which alone can be turned");
  if (data.vocabulary.size > 0 || (data.label.empty() && data.target.empty()))
    throw key_error("partition.kind", who + "holds no features that could be noisy or turned");
  if (data.is_sparse) throw key_error("partition.kind", who + "is sparse, which noise and turns would fill; set data.storage = \"dense\"");
}

// out = image [side,side] turned counter-clockwise by quarter turns: the last column becomes the first row.
template <class Pixel>
void turn(const Pixel* image, std::size_t side, unsigned quarter_turns, Pixel* out) {
  for (std::size_t y = 0; y < side; ++y) {
    for (std::size_t x = 0; x < side; ++x) {
      const std::size_t last = side - 1;
      const std::size_t from[] = {y * side + x, x * side + last - y, (last - y) * side + last - x, (last - x) * side + y};
      out[y * side + x] = image[from[quarter_turns % 4]];
    }
  }
}

template <class Pixel>
void turn_row(Pixel* row, std::span<const std::size_t> shape, unsigned quarter_turns, std::vector<Pixel>& scratch) {
  const std::size_t plane = shape[1] * shape[2];
  scratch.resize(plane);
  for (std::size_t c = 0; c < shape[0]; ++c) {
    turn(row + c * plane, shape[1], quarter_turns, scratch.data());
    std::copy(scratch.begin(), scratch.end(), row + c * plane);
  }
}

template <class T>
Buffer<T> copy_of(const Buffer<T>& buffer) {
  Buffer<T> copy(buffer.size());
  std::copy(buffer.begin(), buffer.end(), copy.begin());
  return copy;
}

// Copies a data set of dense rows or pixels; `check` refused the others.
template <class T>
Dataset<T> copy_of(const Dataset<T>& data) {
  Dataset<T> copy;
  copy.name = data.name;
  copy.num_rows = data.num_rows;
  copy.num_features = data.num_features;
  copy.num_classes = data.num_classes;
  copy.shape = data.shape;
  copy.dense = copy_of(data.dense);
  copy.images.pixels = copy_of(data.images.pixels);
  copy.images.mean = data.images.mean;
  copy.images.deviation = data.images.deviation;
  copy.label = data.label;
  copy.target = data.target;
  copy.class_names = data.class_names;
  copy.client_begin = data.client_begin;
  return copy;
}

template <class T>
void add_noise(Dataset<T>& data, std::uint32_t row, double variance, std::uint64_t key) {
  RandomSequence random(RandomStream(key, row, 0));
  const double deviation = std::sqrt(variance);
  T* features = data.dense_row(row);
  for (std::size_t j = 0; j < data.num_features; ++j)
    features[j] = static_cast<T>(static_cast<double>(features[j]) + deviation * random.normal());
}

}  // namespace

template <class T>
Dataset<T> as_clients_see(const Dataset<T>& data, std::span<const Shard> shards, std::span<const FeatureShift> shifts, std::uint64_t seed) {
  check(data, shifts);
  Dataset<T> seen = copy_of(data);
  if (std::ranges::any_of(shifts, [](const FeatureShift& s) { return s.noise_variance > 0; })) seen.expand_pixels();
  const std::uint64_t key = hash64(seed, static_cast<std::uint64_t>(Purpose::feature_noise));
  std::vector<T> scratch;
  std::vector<std::uint8_t> pixel_scratch;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const FeatureShift& shift = shifts[i];
    for (const std::uint32_t row : shards[i]) {
      check_for_stop();
      if (shift.quarter_turns % 4 != 0 && seen.has_pixels())
        turn_row(seen.images.pixels.data() + row * seen.num_features, seen.shape, shift.quarter_turns, pixel_scratch);
      else if (shift.quarter_turns % 4 != 0)
        turn_row(seen.dense_row(row), seen.shape, shift.quarter_turns, scratch);
      if (shift.noise_variance > 0) add_noise(seen, row, shift.noise_variance, key);
    }
  }
  return seen;
}

template Dataset<float> as_clients_see(const Dataset<float>&, std::span<const Shard>, std::span<const FeatureShift>, std::uint64_t);
template Dataset<double> as_clients_see(const Dataset<double>&, std::span<const Shard>, std::span<const FeatureShift>, std::uint64_t);

}  // namespace fl
