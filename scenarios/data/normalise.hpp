// The conversion of image bytes to features: by Dataset::images.mean and deviation, the same for training and test images.
#pragma once

#include "scenarios/data/load.hpp"

namespace fl {

// Mean and deviation of byte/255 over all pixels of each channel; a channel of one value has deviation 1.
struct PixelStatistics {
  std::vector<double> mean, deviation;  // [channels]
};
template <class T>
[[nodiscard]] FL_API PixelStatistics pixel_statistics(const Dataset<T>& images);

// Throws ConfigError when the data has no pixels but options that are for images, or another number of channels than mean has.
template <class T>
FL_API void apply(const ImageOptions& options, LoadedData<T>& data);

}  // namespace fl
