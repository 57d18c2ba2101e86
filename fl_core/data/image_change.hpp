// The random change of a training image (Augmentation), the same on CPU and GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/data/dataset.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// The numbers that the images of a minibatch are changed with: those of a layer that no network has.
[[nodiscard]] FL_HD inline RandomStream numbers_of_images(RandomStream minibatch) {
  minibatch.step_layer |= 0xFFFF;
  return minibatch;
}

// Where a changed image takes its pixels from: row y + dy, column x + dx, x counted from the right where it is mirrored.
struct ImageChange {
  std::int32_t dy = 0, dx = 0;
  bool is_mirrored = false;

  // Of the image at this place of its minibatch.
  FL_HD ImageChange(std::int64_t crop, bool flip, const RandomStream& random, std::uint32_t place) {
    std::uint32_t words[4];
    random.quad(place, words);
    const auto places = static_cast<std::uint64_t>(2 * crop + 1);
    dy = static_cast<std::int32_t>((words[0] * places) >> 32) - static_cast<std::int32_t>(crop);
    dx = static_cast<std::int32_t>((words[1] * places) >> 32) - static_cast<std::int32_t>(crop);
    is_mirrored = flip && (words[2] >> 31) != 0;
  }
  // The place in a plane [height,width] that the pixel at (y, x) comes from; height * width where that is outside of the image.
  [[nodiscard]] FL_HD std::size_t source(std::size_t y, std::size_t x, std::size_t height, std::size_t width) const {
    const std::size_t from_y = y + static_cast<std::size_t>(dy);  // beyond the height when it is negative, for it wraps
    const std::size_t from_x = (is_mirrored ? width - 1 - x : x) + static_cast<std::size_t>(dx);
    return from_y < height && from_x < width ? from_y * width + from_x : height * width;
  }
};

}  // namespace fl
