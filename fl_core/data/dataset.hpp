// The data of all parts: rows of features (dense, CSR if sparse, bytes of images, or tokens) and one label per row.
//
// Images stay in their stored bytes until a minibatch needs them: a feature is (byte/255 - mean) / deviation of its channel. Each row is
// stored once; a client's Shard is a list of row numbers. Labels are class numbers 0 .. C-1 for classification (class_names keeps the
// labels of the file), targets for regression, and absent for quadratics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// Random changes to the training images of a minibatch. The image is padded with `crop` zero bytes on each side, a piece of the original
// size is cut out, and the piece is mirrored (left and right exchanged) with probability 1/2.
struct Augmentation {
  std::int64_t crop = 0;  // pixels on each side
  bool flip = false;
  [[nodiscard]] bool is_none() const { return crop == 0 && !flip; }
};

// The positions of a text row that have the next token as their label.
enum class NextToken {
  none,        // the rows are not text
  after_last,  // the row's last token
  after_each,  // every token: the labels are the row's tokens from the second one on, then the row's label
};

// Rows that are stored as bytes of images.
struct ImageRows {
  Buffer<std::uint8_t> pixels;    // [m,D] channel after channel; empty: rows have another storage
  std::vector<double> mean;       // [channels], of byte/255; empty = 0
  std::vector<double> deviation;  // [channels]; empty = 1
  Augmentation augment;           // for gather_changed
};

// Rows in compressed sparse row (CSR) format.
template <class T>
struct SparseRows {
  Buffer<std::uint64_t> row_begin;  // [m+1]
  Buffer<std::uint32_t> column;     // [nnz] ascending within a row
  Buffer<T> value;                  // [nnz]; empty when every stored value is 1 (binary features)
};

// The meaning of the tokens.
struct Vocabulary {
  std::size_t size = 0;       // distinct tokens; 0 = features are not tokens
  std::size_t num_users = 0;  // ratings: the tokens of a row are user and num_users + item; 0 = no ratings
  NextToken next_token = NextToken::none;
};

template <class T>
struct Dataset {
  std::string name;              // from the scenario
  std::size_t num_rows = 0;      // m
  std::size_t num_features = 0;  // D
  std::size_t num_classes = 0;   // C; 0 = no classes
  bool is_sparse = false;

  std::vector<std::size_t> shape;  // of a row: {channels, height, width} of images; empty = {D}

  Buffer<T> dense;  // [m,dense_stride()] row-major (dense only); long rows begin on cache lines
  ImageRows images;
  SparseRows<T> sparse;         // if is_sparse
  Buffer<std::int32_t> tokens;  // [m,D] (sequences only), numbers 0 .. vocabulary.size-1
  Vocabulary vocabulary;
  std::vector<std::int32_t> label;       // [m] class numbers (classification)
  std::vector<double> target;            // [m] (regression)
  std::vector<std::string> class_names;  // [C]

  // The natural partition of the data, or empty: client i has the rows client_begin[i] .. client_begin[i+1]-1.
  std::vector<std::size_t> client_begin;

  [[nodiscard]] bool has_pixels() const { return !images.pixels.empty(); }
  // Writes the features of `rows` to out [rows,D], for every kind of storage.
  void gather(std::span<const std::uint32_t> rows, T* out) const;
  // Does the same with images changed according to images.augment. Image r uses the numbers 4*(first + r) .. 4*(first + r) + 3 of
  // `random`.
  void gather_changed(std::span<const std::uint32_t> rows, const RandomStream& random, std::size_t first, T* out) const;
  // Returns the labels per row: one, or one for each position of a sequence.
  [[nodiscard]] std::size_t labels_per_row() const { return vocabulary.next_token == NextToken::after_each ? num_features : 1; }
  // Writes the labels of `rows` to out [rows,labels_per_row()].
  void gather_labels(std::span<const std::uint32_t> rows, std::int32_t* out) const;
  [[nodiscard]] std::size_t num_items() const { return vocabulary.num_users > 0 ? vocabulary.size - vocabulary.num_users : 0; }
  // Converts images to dense rows.
  void expand_pixels();

  [[nodiscard]] std::size_t dense_stride() const { return aligned_stride<T>(num_features); }
  [[nodiscard]] T* dense_row(std::size_t row) { return dense.data() + row * dense_stride(); }
  [[nodiscard]] const T* dense_row(std::size_t row) const { return dense.data() + row * dense_stride(); }
  // Allocates zeros for num_rows rows of num_features.
  void allocate_dense() { dense = Buffer<T>(num_rows * dense_stride()); }
  [[nodiscard]] bool all_ones() const { return is_sparse && sparse.value.empty() && sparse.column.size() > 0; }
};

extern template struct Dataset<float>;
extern template struct Dataset<double>;

// Row numbers of a client, ascending unless the partitioner defines another order.
using Shard = std::vector<std::uint32_t>;

struct Partition {
  std::vector<Shard> shards;  // [n] each row of the training set is in exactly one shard; no shard is empty
  std::uint64_t hash = 0;     // of all shards in order; identifies the split in the results
};
[[nodiscard]] FL_API std::uint64_t hash_of(const std::vector<Shard>& shards);

}  // namespace fl
