#include "fl_core/data/dataset.hpp"

#include <algorithm>

#include "fl_core/data/image_change.hpp"
#include "fl_core/state/checksum.hpp"

namespace fl {

namespace {

// feature = scale * byte + shift, of each channel.
template <class T>
struct PixelMap {
  explicit PixelMap(const Dataset<T>& data) : plane(data.num_features / channels_of(data)) {
    for (std::size_t c = 0; c < channels_of(data); ++c) {
      const double mean = data.images.mean.empty() ? 0 : data.images.mean[c];
      const double deviation = data.images.deviation.empty() ? 1 : data.images.deviation[c];
      scale.push_back(static_cast<T>(1 / (255 * deviation)));
      shift.push_back(static_cast<T>(-mean / deviation));
    }
  }
  static std::size_t channels_of(const Dataset<T>& data) { return data.shape.size() == 3 ? data.shape[0] : 1; }
  void expand(const std::uint8_t* bytes, T* out) const {
    for (std::size_t c = 0; c < scale.size(); ++c) {
      const T a = scale[c], b = shift[c];
      for (std::size_t j = c * plane; j < (c + 1) * plane; ++j) out[j] = a * static_cast<T>(bytes[j]) + b;
    }
  }
  std::size_t plane;
  std::vector<T> scale, shift;
};

// One channel [height,width]; outside of the image the byte is 0.
template <class T>
void expand_changed(const ImageChange& change, const std::uint8_t* bytes, std::size_t height, std::size_t width, T scale, T shift, T* out) {
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t from = change.source(y, x, height, width);
      *out++ = from < height * width ? scale * static_cast<T>(bytes[from]) + shift : shift;
    }
}

// Rows of a minibatch lie anywhere in memory. While one is expanded, the next ones are on their way.
constexpr std::size_t kRowsAhead = 4;

void fetch_ahead(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::size_t kLine = 64, kMost = 1024;  // the processor follows a longer row by itself
  for (std::size_t at = 0; at < std::min(size, kMost); at += kLine) __builtin_prefetch(bytes + at);
}

}  // namespace

template <class T>
void Dataset<T>::gather(std::span<const std::uint32_t> rows, T* out) const {
  if (has_pixels()) {
    const PixelMap<T> map(*this);
    const auto image = [&](std::size_t r) { return images.pixels.data() + rows[r] * num_features; };
    for (std::size_t r = 0; r < std::min(kRowsAhead, rows.size()); ++r) fetch_ahead(image(r), num_features);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r + kRowsAhead < rows.size()) fetch_ahead(image(r + kRowsAhead), num_features);
      map.expand(image(r), out + r * num_features);
    }
    return;
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    T* to = out + r * num_features;
    if (vocabulary.size > 0) {
      std::transform(&tokens[rows[r] * num_features], &tokens[rows[r] * num_features] + num_features, to,
                     [](std::int32_t token) { return static_cast<T>(token); });
      continue;
    }
    if (!is_sparse) {
      std::copy_n(dense_row(rows[r]), num_features, to);
      continue;
    }
    std::fill_n(to, num_features, T(0));
    for (std::uint64_t e = sparse.row_begin[rows[r]]; e < sparse.row_begin[rows[r] + 1]; ++e)
      to[sparse.column[e]] = sparse.value.empty() ? T(1) : sparse.value[e];
  }
}

template <class T>
void Dataset<T>::gather_changed(std::span<const std::uint32_t> rows, const RandomStream& random, std::size_t first, T* out) const {
  if (!has_pixels() || images.augment.is_none()) return gather(rows, out);
  const PixelMap<T> map(*this);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const ImageChange change(images.augment.crop, images.augment.flip, random, static_cast<std::uint32_t>(first + r));
    for (std::size_t c = 0; c < map.scale.size(); ++c) {
      const std::size_t offset = c * map.plane;
      expand_changed(change, images.pixels.data() + rows[r] * num_features + offset, shape[1], shape[2], map.scale[c], map.shift[c],
                     out + r * num_features + offset);
    }
  }
}

template <class T>
void Dataset<T>::gather_labels(std::span<const std::uint32_t> rows, std::int32_t* out) const {
  for (const std::uint32_t row : rows) {
    if (vocabulary.next_token == NextToken::after_each) out = std::copy_n(&tokens[row * num_features] + 1, num_features - 1, out);
    *out++ = label[row];
  }
}

template <class T>
void Dataset<T>::expand_pixels() {
  if (!has_pixels()) return;
  allocate_dense();
  const PixelMap<T> map(*this);
  for (std::size_t r = 0; r < num_rows; ++r) map.expand(images.pixels.data() + r * num_features, dense_row(r));
  images.pixels = {};
}

template class Buffer<std::uint8_t>;  // clang++ 14 leaves its destructor out otherwise
template struct Dataset<float>;
template struct Dataset<double>;

std::uint64_t hash_of(const std::vector<Shard>& shards) {
  Hash64 hash;
  hash.add_value(static_cast<std::uint64_t>(shards.size()));
  for (const Shard& shard : shards) {
    hash.add_value(static_cast<std::uint64_t>(shard.size()));
    hash.add_values(std::span<const std::uint32_t>(shard));
  }
  return hash.value();
}

}  // namespace fl
