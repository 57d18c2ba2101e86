// The random change of a training image (Augmentation), the same on CPU and GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/data/dataset.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// Returns the random stream for the image changes of a minibatch. It uses a layer number that no network has.
[[nodiscard]] FL_HD inline RandomStream numbers_of_images(RandomStream minibatch) {
  minibatch.step_layer |= 0xFFFF;
  return minibatch;
}

// The source of a changed image's pixels: row y + dy, column x + dx. If the image is mirrored, x counts from the right.
struct ImageChange {
  std::int32_t dy = 0, dx = 0;
  bool is_mirrored = false;

  // Draws the change of the image at index `place` of its minibatch.
  FL_HD ImageChange(std::int64_t crop, bool flip, const RandomStream& random, std::uint32_t place) {
    std::uint32_t words[4];
    random.quad(place, words);
    const auto places = static_cast<std::uint64_t>(2 * crop + 1);
    dy = static_cast<std::int32_t>((words[0] * places) >> 32) - static_cast<std::int32_t>(crop);
    dx = static_cast<std::int32_t>((words[1] * places) >> 32) - static_cast<std::int32_t>(crop);
    is_mirrored = flip && (words[2] >> 31) != 0;
  }
  // Returns the index in a plane [height,width] of the source pixel of (y, x), or height * width if it lies outside the image.
  [[nodiscard]] FL_HD std::size_t source(std::size_t y, std::size_t x, std::size_t height, std::size_t width) const {
    const std::size_t from_y = y + static_cast<std::size_t>(dy);  // a negative sum wraps to a value above the height
    const std::size_t from_x = (is_mirrored ? width - 1 - x : x) + static_cast<std::size_t>(dx);
    return from_y < height && from_x < width ? from_y * width + from_x : height * width;
  }
};

}  // namespace fl
