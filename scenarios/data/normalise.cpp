#include "scenarios/data/normalise.hpp"

#include <array>
#include <cmath>

#include "fl_core/config/key_error.hpp"

namespace fl {
namespace {

using Histogram = std::array<std::uint64_t, 256>;

// Counts are exact, so the statistics do not depend on the order of the pixels.
Histogram histogram_of(const std::uint8_t* pixels, std::size_t num_rows, std::size_t row, std::size_t plane) {
  // Four counters, for a run of one value (an image's background) would else wait for its own last increment.
  std::array<Histogram, 4> counts{};
  for (std::size_t r = 0; r < num_rows; ++r, pixels += row) {
    std::size_t j = 0;
    for (; j + 4 <= plane; j += 4)
      for (std::size_t lane = 0; lane < 4; ++lane) ++counts[lane][pixels[j + lane]];
    for (; j < plane; ++j) ++counts[0][pixels[j]];
  }
  for (std::size_t lane = 1; lane < 4; ++lane)
    for (std::size_t v = 0; v < counts[0].size(); ++v) counts[0][v] += counts[lane][v];
  return counts[0];
}

void require_images(const ImageOptions& options, const std::string& name) {
  const bool asks = options.normalise != ImageOptions::Normalise::unit || !options.augment.is_none();
  if (asks)
    throw key_error(
        options.augment.is_none() ? "data.normalise" : "data.augment",
        "data set \"" + name + "\" has no images; data." + (options.augment.is_none() ? "normalise" : "augment") + " is for images");
}

}  // namespace

template <class T>
PixelStatistics pixel_statistics(const Dataset<T>& images) {
  const std::size_t channels = images.shape[0], plane = images.num_features / channels;
  PixelStatistics statistics;
  for (std::size_t c = 0; c < channels; ++c) {
    const Histogram counts = histogram_of(images.images.pixels.data() + c * plane, images.num_rows, images.num_features, plane);
    const double total = static_cast<double>(images.num_rows * plane);
    double sum = 0, squares = 0;
    for (std::size_t v = 0; v < counts.size(); ++v) sum += static_cast<double>(counts[v]) * static_cast<double>(v) / 255;
    const double mean = sum / total;
    for (std::size_t v = 0; v < counts.size(); ++v) {
      const double distance = static_cast<double>(v) / 255 - mean;
      squares += static_cast<double>(counts[v]) * distance * distance;
    }
    const double deviation = std::sqrt(squares / total);
    statistics.mean.push_back(mean);
    statistics.deviation.push_back(deviation > 0 ? deviation : 1);
  }
  return statistics;
}

template <class T>
void apply(const ImageOptions& options, LoadedData<T>& data) {
  using Normalise = ImageOptions::Normalise;
  Dataset<T>& train = data.train;
  if (!train.has_pixels()) return require_images(options, train.name);
  const std::size_t channels = train.shape[0];
  if (options.normalise == Normalise::none) train.images.deviation.assign(channels, 1.0 / 255);
  if (options.normalise == Normalise::standard) {
    PixelStatistics statistics{options.mean, options.deviation};
    if (statistics.mean.empty()) statistics = pixel_statistics(train);
    if (statistics.mean.size() != channels)
      throw key_error("data.mean", "with data.deviation: hold " + std::to_string(statistics.mean.size()) + " numbers, the images of \"" +
                                       train.name + "\" have " + std::to_string(channels) + " channels");
    train.images.mean = std::move(statistics.mean);
    train.images.deviation = std::move(statistics.deviation);
  }
  train.images.augment = options.augment;
  if (!data.test) return;
  data.test->images.mean = train.images.mean;
  data.test->images.deviation = train.images.deviation;
}

template PixelStatistics pixel_statistics<float>(const Dataset<float>&);
template PixelStatistics pixel_statistics<double>(const Dataset<double>&);
template void apply<float>(const ImageOptions&, LoadedData<float>&);
template void apply<double>(const ImageOptions&, LoadedData<double>&);

}  // namespace fl
