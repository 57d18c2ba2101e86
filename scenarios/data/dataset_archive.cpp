#include "scenarios/data/dataset_archive.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "fl_core/state/checksum.hpp"

namespace fl {

namespace {

// Copies what does not depend on the rows.
template <class T>
Dataset<T> without_rows(const Dataset<T>& data) {
  Dataset<T> form;
  form.name = data.name;
  form.num_features = data.num_features;
  form.num_classes = data.num_classes;
  form.is_sparse = data.is_sparse;
  form.shape = data.shape;
  form.images.mean = data.images.mean;
  form.images.deviation = data.images.deviation;
  form.images.augment = data.images.augment;
  form.vocabulary = data.vocabulary;
  form.class_names = data.class_names;
  return form;
}

template <class T>
void select_sparse(const SparseRows<T>& from, std::span<const std::uint32_t> rows, SparseRows<T>& to) {
  std::size_t entries = 0;
  for (const std::uint32_t row : rows) entries += from.row_begin[row + 1] - from.row_begin[row];
  to.row_begin = Buffer<std::uint64_t>(rows.size() + 1);
  to.column = Buffer<std::uint32_t>(entries);
  to.value = Buffer<T>(from.value.empty() ? 0 : entries);
  std::size_t at = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::uint64_t begin = from.row_begin[rows[r]], count = from.row_begin[rows[r] + 1] - begin;
    std::copy_n(from.column.data() + begin, count, to.column.data() + at);
    if (!from.value.empty()) std::copy_n(from.value.data() + begin, count, to.value.data() + at);
    to.row_begin[r + 1] = at += count;
  }
}

template <class U>
void select_flat(const Buffer<U>& from, std::size_t width, std::span<const std::uint32_t> rows, Buffer<U>& to) {
  if (from.empty()) return;
  to = Buffer<U>(rows.size() * width);
  for (std::size_t r = 0; r < rows.size(); ++r) std::copy_n(from.data() + rows[r] * width, width, to.data() + r * width);
}

// Writes or reads a buffer of the host.
template <class U>
void persist_buffer(Archive& archive, Buffer<U>& buffer) {
  std::vector<U> values(buffer.data(), buffer.data() + buffer.size());
  archive.list(values);
  if (!archive.is_reading()) return;
  buffer = Buffer<U>(values.size());
  std::ranges::copy(values, buffer.data());
}

// Writes or reads dense rows, without what separates long ones in memory.
template <class T>
void persist_dense(Archive& archive, Dataset<T>& data) {
  std::vector<T> values;
  for (std::size_t r = 0; r < data.num_rows && !archive.is_reading() && !data.dense.empty(); ++r)
    values.insert(values.end(), data.dense_row(r), data.dense_row(r) + data.num_features);
  archive.list(values);
  if (!archive.is_reading() || values.empty()) return;
  if (data.num_features == 0 || values.size() % data.num_features != 0 || values.size() / data.num_features != data.num_rows)
    throw ArchiveError("in 'data': the features are not those of its rows");
  data.allocate_dense();
  for (std::size_t r = 0; r < data.num_rows; ++r)
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(r * data.num_features), data.num_features, data.dense_row(r));
}

void require(bool holds, const char* what) {
  if (!holds) throw ArchiveError(std::string("in 'data': ") + what);
}

// Rows are numbered by 32 bits, and features, classes and tokens by 31, so that products of two sizes do not overflow.
template <class T>
void require_sizes(const Dataset<T>& data) {
  constexpr std::size_t kMostRows = std::numeric_limits<std::uint32_t>::max(), kMost = std::numeric_limits<std::int32_t>::max();
  require(data.num_rows <= kMostRows, "there are too many rows");
  require(data.num_features <= kMost && data.num_classes <= kMost && data.vocabulary.size <= kMost, "a size is beyond 2^31");
  require(data.vocabulary.num_users <= data.vocabulary.size, "there are more users than users and items together");
}

constexpr std::int64_t kMostCrop = 1024;  // pixels, as data.augment.crop allows

// Throws unless the images are of the size of a row, and each channel has its mean and deviation.
template <class T>
void require_images(const Dataset<T>& data) {
  std::size_t size = 1;
  for (const std::size_t side : data.shape) {
    require(side > 0 && side <= data.num_features / size, "the shape is not that of its rows");
    size *= side;
  }
  require(data.shape.empty() || size == data.num_features, "the shape is not that of its rows");
  const std::size_t channels = data.shape.size() == 3 ? data.shape[0] : 1;
  const ImageRows& images = data.images;
  require(images.mean.empty() || images.mean.size() == channels, "the means are not those of its channels");
  require(images.deviation.empty() || images.deviation.size() == channels, "the deviations are not those of its channels");
  require(std::ranges::all_of(images.deviation, [](double deviation) { return deviation > 0; }), "a deviation is not above 0");
  require(images.augment.is_none() || (data.shape.size() == 3 && !images.pixels.empty()),
          "rows that are no images would be changed as such");
  require(images.augment.crop >= 0 && images.augment.crop <= kMostCrop, "images would be cut at a place far outside");
}

// A row of ratings is a user and an item, which is numbered behind the users.
template <class T>
void require_tokens(const Dataset<T>& data) {
  const Vocabulary& words = data.vocabulary;
  require(data.tokens.empty() || data.tokens.size() == data.num_rows * data.num_features, "the tokens are not those of its rows");
  for (std::size_t i = 0; i < data.tokens.size(); ++i)
    require(data.tokens[i] >= 0 && static_cast<std::size_t>(data.tokens[i]) < words.size, "a token is beyond its vocabulary");
  require(words.next_token == NextToken::none || (!data.tokens.empty() && data.num_classes >= words.size),
          "text has fewer classes than tokens");
  if (words.num_users == 0) return;
  require(data.num_features == 2 && !data.tokens.empty(), "ratings are not pairs");
  for (std::size_t i = 0; i < data.tokens.size(); ++i)
    require((static_cast<std::size_t>(data.tokens[i]) < words.num_users) == (i % 2 == 0), "a rating is not of an item by a user");
}

// Throws unless every row is there and every number is one that readers of rows may use as an index.
template <class T>
void require_fit(const Dataset<T>& data) {
  const std::size_t m = data.num_rows, D = data.num_features;
  require(D == 0 || m <= std::numeric_limits<std::size_t>::max() / D, "there are too many rows");
  require(m == 0 || data.is_sparse || !data.dense.empty() || !data.images.pixels.empty() || !data.tokens.empty(),
          "the rows have no features");
  require(data.images.pixels.empty() || data.images.pixels.size() == m * D, "the pixels are not those of its rows");
  require(data.label.empty() || data.label.size() == m, "the labels are not those of its rows");
  require(data.target.empty() || data.target.size() == m, "the targets are not those of its rows");
  const auto is_below = [](std::size_t bound) {
    return [bound](std::int32_t number) { return number >= 0 && static_cast<std::size_t>(number) < bound; };
  };
  require(std::ranges::all_of(data.label, is_below(data.num_classes)), "a label is beyond its classes");
  require_images(data);
  require_tokens(data);
  if (!data.is_sparse) return;
  const SparseRows<T>& sparse = data.sparse;
  const std::uint64_t* begin = sparse.row_begin.data();
  require(sparse.row_begin.size() == m + 1 && begin[0] == 0 && begin[m] == sparse.column.size() && std::is_sorted(begin, begin + m + 1),
          "the rows' entries do not follow each other");
  require(sparse.value.empty() || sparse.value.size() == sparse.column.size(), "the entries have not one value each");
  require(std::all_of(sparse.column.data(), sparse.column.data() + sparse.column.size(), [D](std::uint32_t column) { return column < D; }),
          "an entry is beyond its features");
}

}  // namespace

template <class T>
Dataset<T> select_rows(const Dataset<T>& data, std::span<const std::uint32_t> rows) {
  Dataset<T> some = without_rows(data);
  some.num_rows = rows.size();
  if (!data.dense.empty()) {
    some.allocate_dense();
    for (std::size_t r = 0; r < rows.size(); ++r) std::copy_n(data.dense_row(rows[r]), data.num_features, some.dense_row(r));
  }
  if (data.is_sparse) select_sparse(data.sparse, rows, some.sparse);
  select_flat(data.images.pixels, data.num_features, rows, some.images.pixels);
  select_flat(data.tokens, data.num_features, rows, some.tokens);
  for (const std::uint32_t row : rows) {
    if (!data.label.empty()) some.label.push_back(data.label[row]);
    if (!data.target.empty()) some.target.push_back(data.target[row]);
  }
  return some;
}

template <class T>
std::uint64_t hash_of_rows(const Dataset<T>& data, std::span<const std::uint32_t> rows) {
  Hash64 hash;
  hash.add_value(std::uint64_t{rows.size()}).add_value(std::uint64_t{data.num_features});
  for (const std::uint32_t row : rows) {
    if (!data.dense.empty()) hash.add_values(std::span<const T>(data.dense_row(row), data.num_features));
    if (data.has_pixels())
      hash.add_values(std::span<const std::uint8_t>(data.images.pixels.data() + row * data.num_features, data.num_features));
    if (!data.tokens.empty())
      hash.add_values(std::span<const std::int32_t>(data.tokens.data() + row * data.num_features, data.num_features));
    if (data.is_sparse) {
      const std::uint64_t begin = data.sparse.row_begin[row], count = data.sparse.row_begin[row + 1] - begin;
      hash.add_value(count).add_values(std::span<const std::uint32_t>(data.sparse.column.data() + begin, count));
      if (!data.sparse.value.empty()) hash.add_values(std::span<const T>(data.sparse.value.data() + begin, count));
    }
    if (!data.label.empty()) hash.add_value(data.label[row]);
    if (!data.target.empty()) hash.add_value(data.target[row]);
  }
  return hash.value();
}

template <class T>
Dataset<T> form_of(const Dataset<T>& data) {
  Dataset<T> form = without_rows(data);
  form.num_rows = 1;
  if (!data.dense.empty()) form.allocate_dense();
  if (data.is_sparse) form.sparse.row_begin = Buffer<std::uint64_t>(2);
  if (!data.images.pixels.empty()) form.images.pixels = Buffer<std::uint8_t>(data.num_features);
  if (!data.tokens.empty()) form.tokens = Buffer<std::int32_t>(data.num_features);
  if (data.vocabulary.num_users > 0) form.tokens[1] = static_cast<std::int32_t>(data.vocabulary.num_users);  // the first item
  if (!data.label.empty()) form.label.push_back(0);
  if (!data.target.empty()) form.target.push_back(0);
  return form;
}

template <class T>
void persist(Archive& archive, Dataset<T>& data) {
  archive.section("data");
  archive.text(data.name);
  for (std::size_t* size : {&data.num_rows, &data.num_features, &data.num_classes, &data.vocabulary.size, &data.vocabulary.num_users})
    archive.value(*size);
  if (archive.is_reading()) require_sizes(data);
  auto next_token = static_cast<std::uint8_t>(data.vocabulary.next_token);
  archive.value(next_token);
  if (next_token > static_cast<std::uint8_t>(NextToken::after_each)) throw ArchiveError("in 'data': labels of an unknown kind");
  data.vocabulary.next_token = static_cast<NextToken>(next_token);
  archive.value(data.is_sparse);
  archive.list(data.shape);
  archive.list(data.images.mean);
  archive.list(data.images.deviation);
  archive.value(data.images.augment.crop);
  archive.value(data.images.augment.flip);
  archive.list_of(data.class_names, [&](std::string& name) { archive.text(name); });
  persist_dense(archive, data);
  persist_buffer(archive, data.images.pixels);
  persist_buffer(archive, data.tokens);
  persist_buffer(archive, data.sparse.row_begin);
  persist_buffer(archive, data.sparse.column);
  persist_buffer(archive, data.sparse.value);
  archive.list(data.label);
  archive.list(data.target);
  if (archive.is_reading()) require_fit(data);
}

#define FL_INSTANTIATE(T)                                                                 \
  template Dataset<T> select_rows(const Dataset<T>&, std::span<const std::uint32_t>);     \
  template std::uint64_t hash_of_rows(const Dataset<T>&, std::span<const std::uint32_t>); \
  template Dataset<T> form_of(const Dataset<T>&);                                         \
  template void persist(Archive&, Dataset<T>&);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
