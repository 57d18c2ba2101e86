// Data as every part sees it: rows of features (dense, CSR when sparse, the bytes of images, or tokens) and one label per row.
//
// Images stay the bytes they are stored as until a minibatch needs them: a feature is (byte/255 - mean) / deviation of its channel.
// Rows are held once; a client's Shard is a list of row numbers. Labels are class numbers 0 .. C-1 for classification (the file's own
// labels are kept in class_names), targets for regression, absent for quadratics.
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

// Random changes to the training images of a minibatch: a piece of an image's size cut from the image with `crop` zero bytes around it,
// then mirrored (left and right exchanged) with probability 1/2.
struct Augmentation {
  std::int64_t crop = 0;  // pixels on each side
  bool flip = false;
  [[nodiscard]] bool is_none() const { return crop == 0 && !flip; }
};

// Where the rows of a language are labelled with what comes next.
enum class NextToken {
  none,        // the rows are no text
  after_last,  // after the row's last token
  after_each,  // after each of its tokens: the row's own ones from the second on, and then the row's label
};

// Rows that are the bytes of images.
struct ImageRows {
  Buffer<std::uint8_t> pixels;    // [m,D] channel after channel; empty: rows are something else
  std::vector<double> mean;       // [channels], of byte/255; empty = 0
  std::vector<double> deviation;  // [channels]; empty = 1
  Augmentation augment;           // for gather_changed
};

// Rows that are compressed, one after another.
template <class T>
struct SparseRows {
  Buffer<std::uint64_t> row_begin;  // [m+1]
  Buffer<std::uint32_t> column;     // [nnz] ascending within a row
  Buffer<T> value;                  // [nnz]; empty when every stored value is 1 (binary features)
};

// What tokens stand for.
struct Vocabulary {
  std::size_t size = 0;       // different tokens; 0 = features are no tokens
  std::size_t num_users = 0;  // ratings: a row's tokens are user and num_users + item; 0 = no ratings
  NextToken next_token = NextToken::none;
};

template <class T>
struct Dataset {
  std::string name;              // as named by the scenario
  std::size_t num_rows = 0;      // m
  std::size_t num_features = 0;  // D
  std::size_t num_classes = 0;   // C; 0 = no classes
  bool is_sparse = false;

  std::vector<std::size_t> shape;  // of a row: {channels, height, width} of images; empty = {D}

  Buffer<T> dense;  // [m,dense_stride()] row-major (dense only); long rows begin on cache lines
  ImageRows images;
  SparseRows<T> sparse;         // where is_sparse
  Buffer<std::int32_t> tokens;  // [m,D] (sequences only), numbers 0 .. vocabulary.size-1
  Vocabulary vocabulary;
  std::vector<std::int32_t> label;       // [m] class numbers (classification)
  std::vector<double> target;            // [m] (regression)
  std::vector<std::string> class_names;  // [C]

  // Data may come with its natural partition: rows client_begin[i] .. client_begin[i+1]-1 are client i's. Else empty.
  std::vector<std::size_t> client_begin;

  [[nodiscard]] bool has_pixels() const { return !images.pixels.empty(); }
  // out [rows,D] = the features of `rows`, whatever they are stored as.
  void gather(std::span<const std::uint32_t> rows, T* out) const;
  // The same with images changed as images.augment says. Image r is drawn with the numbers 4*(first + r) .. 4*(first + r) + 3 of `random`.
  void gather_changed(std::span<const std::uint32_t> rows, const RandomStream& random, std::size_t first, T* out) const;
  // Labels that a row is compared with: one, or one for each position of a sequence.
  [[nodiscard]] std::size_t labels_per_row() const { return vocabulary.next_token == NextToken::after_each ? num_features : 1; }
  // out [rows,labels_per_row()]
  void gather_labels(std::span<const std::uint32_t> rows, std::int32_t* out) const;
  [[nodiscard]] std::size_t num_items() const { return vocabulary.num_users > 0 ? vocabulary.size - vocabulary.num_users : 0; }
  // Images as dense rows.
  void expand_pixels();

  [[nodiscard]] std::size_t dense_stride() const { return aligned_stride<T>(num_features); }
  [[nodiscard]] T* dense_row(std::size_t row) { return dense.data() + row * dense_stride(); }
  [[nodiscard]] const T* dense_row(std::size_t row) const { return dense.data() + row * dense_stride(); }
  // Zeros for num_rows rows of num_features.
  void allocate_dense() { dense = Buffer<T>(num_rows * dense_stride()); }
  [[nodiscard]] bool all_ones() const { return is_sparse && sparse.value.empty() && sparse.column.size() > 0; }
};

extern template struct Dataset<float>;
extern template struct Dataset<double>;

// A client's rows, ascending unless the partitioner says otherwise.
using Shard = std::vector<std::uint32_t>;

struct Partition {
  std::vector<Shard> shards;  // [n] every row of the training set in exactly one, none empty
  std::uint64_t hash = 0;     // of all shards in order: the split's identity in the results
};
[[nodiscard]] FL_API std::uint64_t hash_of(const std::vector<Shard>& shards);

}  // namespace fl
