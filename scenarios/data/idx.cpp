#include "scenarios/data/idx.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"

namespace fl {

namespace {

constexpr std::uint32_t kImages = 0x803, kLabels = 0x801;

std::string hex(std::uint32_t x) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", x);
  return text;
}

// An IDX file behind its header.
struct IdxFile {
  DataReader reader;
  std::vector<std::size_t> sizes;  // of its dimensions
  std::size_t begin = 0;           // of the entries

  void read(std::span<std::uint8_t> out) const { reader.read(begin, std::as_writable_bytes(out)); }
};

IdxFile open_idx(DataReader reader, std::uint32_t magic, std::size_t dimensions, const char* what) {
  const auto fail = [name = reader.name().string()](const std::string& why) { throw DataError(name + ": " + why); };
  IdxFile file{std::move(reader), {}, 4 + 4 * dimensions};
  if (file.reader.size_up_to(file.begin) < file.begin) fail("is too short for the header of an IDX file of " + std::string(what));
  std::vector<std::byte> header(file.begin);
  file.reader.read(0, header);
  const auto word = [&header](std::size_t i) {
    std::uint32_t value = 0;
    for (std::size_t b = 0; b < 4; ++b) value = value << 8 | std::to_integer<std::uint32_t>(header[4 * i + b]);
    return value;
  };
  if (word(0) != magic) fail("begins with " + hex(word(0)) + "; an IDX file of " + what + " begins with " + hex(magic));
  std::size_t expected = 1;
  for (std::size_t i = 1; i <= dimensions; ++i) {
    file.sizes.push_back(word(i));
    if (word(i) == 0 || expected > (std::size_t{1} << 48) / word(i)) fail("its header has a dimension of " + std::to_string(word(i)));
    expected *= word(i);
  }
  const std::size_t there = file.reader.size_up_to(file.begin + expected + 1) - file.begin;
  if (there != expected)
    fail(std::string(there < expected ? "is truncated" : "is longer than its header says") + ": " + std::to_string(there) +
         " bytes after the header, which promises " + std::to_string(expected));
  return file;
}

}  // namespace

template <class T>
Dataset<T> read_idx(DataReader images, DataReader labels, const std::string& name, std::size_t rows, std::size_t num_classes) {
  const std::string labels_name = labels.name().string();
  const IdxFile pictures = open_idx(std::move(images), kImages, 3, "images"), classes = open_idx(std::move(labels), kLabels, 1, "labels");
  const std::filesystem::path& images_name = pictures.reader.name();
  if (pictures.sizes[0] != classes.sizes[0])
    throw DataError(labels_name + ": holds " + std::to_string(classes.sizes[0]) + " labels, but " + images_name.string() + " holds " +
                    std::to_string(pictures.sizes[0]) + " images");
  Dataset<T> data;
  data.name = name;
  data.num_rows = rows_kept(rows, pictures.sizes[0], images_name);
  data.shape = {1, pictures.sizes[1], pictures.sizes[2]};
  data.num_features = pictures.sizes[1] * pictures.sizes[2];
  data.images.pixels.resize_discard(data.num_rows * data.num_features);
  pictures.read(data.images.pixels.span());
  std::vector<std::uint8_t> label(classes.sizes[0]);
  classes.read(label);
  const std::size_t found = std::size_t{1} + *std::max_element(label.begin(), label.end());
  data.num_classes = num_classes > 0 ? num_classes : found;
  if (found > data.num_classes)
    throw DataError(labels_name + ": holds the label " + std::to_string(found - 1) + "; the training set has " +
                    std::to_string(num_classes) + " classes");
  data.label.assign(label.begin(), label.begin() + static_cast<std::ptrdiff_t>(data.num_rows));
  for (std::size_t c = 0; c < data.num_classes; ++c) data.class_names.push_back(std::to_string(c));
  return data;
}

template Dataset<float> read_idx<float>(DataReader, DataReader, const std::string&, std::size_t, std::size_t);
template Dataset<double> read_idx<double>(DataReader, DataReader, const std::string&, std::size_t, std::size_t);

}  // namespace fl
