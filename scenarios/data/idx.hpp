// IDX files of images and their labels, as MNIST, Fashion-MNIST and EMNIST are published: plain or gzip.
//
//   images  magic 0x00000803, count, height, width (32-bit, most significant byte first), then count*height*width bytes
//   labels  magic 0x00000801, count, then count bytes: class numbers from 0
// Source of the format: http://yann.lecun.com/exdb/mnist/
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "fl_core/data/dataset.hpp"
#include "scenarios/data/bytes.hpp"

namespace fl {

// Images {1,height,width} as pixels; `name` becomes Dataset::name. `rows` > 0 keeps only the first, which must be there. Classes are 0 ..
// the largest label, or 0 .. num_classes-1 where that is given; a label beyond is an error. Throws DataError naming the file: wrong magic,
// truncated, longer than its header says, another number of labels than images. Memory is taken for bytes that are there and not for
// those that a header announces; packed files are unpacked as far as their headers say.
template <class T>
[[nodiscard]] FL_API Dataset<T> read_idx(DataReader images, DataReader labels, const std::string& name, std::size_t rows = 0,
                                         std::size_t num_classes = 0);

}  // namespace fl
