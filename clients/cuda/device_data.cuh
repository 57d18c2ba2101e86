// A data set on the GPU, and what kernels compute from its rows: a network's inputs, and the losses and slopes of its outputs.
//
// A position of a minibatch holds a row number or kNoRow.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "clients/learning/network_form.hpp"
#include "fl_core/data/dataset.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/random/random.hpp"

namespace fl::cuda {

inline constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;

// Sparse rows on the GPU, laid out as in SparseRows.
template <class T>
struct DeviceSparseRows {
  const std::uint64_t* row_begin = nullptr;
  const std::uint32_t* column = nullptr;
  const T* value = nullptr;  // null: all ones
};

// A data set on the GPU, with exactly one kind of rows.
template <class T>
struct DeviceRows {
  std::size_t num_features = 0, stride = 0;
  const T* dense = nullptr;
  const std::uint8_t* pixels = nullptr;
  const T *scale = nullptr, *shift = nullptr;  // per channel of the pixels
  std::size_t plane = 0;                       // pixels per channel
  DeviceSparseRows<T> sparse;
  const std::int32_t* token = nullptr;
  const std::int32_t* label = nullptr;  // null: only targets
  const double* target = nullptr;       // null: only labels
  std::size_t num_labels = 1;           // per row; if above one, the further labels are the row's tokens from the second on
  std::size_t height = 0, width = 0;    // of images that are augmented
  Augmentation augment;
};

// Returns whether a GPU can hold the data: dense rows, images as bytes, tokens, or sparse rows of up to 4096 features, with classes or
// targets.
template <class T>
[[nodiscard]] bool can_lie_on_device(const Dataset<T>& data);

// Copies host memory into a buffer on the GPU.
template <class U>
const U* keep(Buffer<U>& there, std::span<const U> here) {
  there = Buffer<U>(here.size(), Device::cuda);
  const DeviceStream stream(Device::cuda);  // a stream of its own: no other stream waits
  if (!here.empty()) ::fl::copy_bytes(there.data(), Device::cuda, here.data(), Device::cpu, here.size_bytes(), stream.get());
  return there.data();
}

template <class T>
class DeviceData {
 public:
  explicit DeviceData(const Dataset<T>& data) {
    rows_.num_features = data.num_features;
    if (data.has_pixels()) {
      const std::size_t channels = data.shape.size() == 3 ? data.shape[0] : 1;
      std::vector<T> scale, shift;
      for (std::size_t c = 0; c < channels; ++c) {
        const double mean = data.images.mean.empty() ? 0 : data.images.mean[c];
        const double deviation = data.images.deviation.empty() ? 1 : data.images.deviation[c];
        scale.push_back(static_cast<T>(1 / (255 * deviation)));
        shift.push_back(static_cast<T>(-mean / deviation));
      }
      rows_.plane = data.num_features / channels;
      rows_.pixels = keep(pixels_, data.images.pixels.span());
      rows_.scale = keep(scale_, std::span<const T>(scale));
      rows_.shift = keep(shift_, std::span<const T>(shift));
      if (!data.images.augment.is_none()) {
        rows_.augment = data.images.augment;
        rows_.height = data.shape[1];
        rows_.width = data.shape[2];
      }
    } else if (data.vocabulary.size > 0) {
      rows_.token = keep(token_, data.tokens.span());
      rows_.num_labels = data.labels_per_row();
    } else if (data.is_sparse) {
      rows_.sparse.row_begin = keep(row_begin_, data.sparse.row_begin.span());
      rows_.sparse.column = keep(column_, data.sparse.column.span());
      if (!data.all_ones()) rows_.sparse.value = keep(value_, data.sparse.value.span());
    } else {
      rows_.stride = data.dense_stride();
      rows_.dense = keep(dense_, data.dense.span());
    }
    if (!data.label.empty()) rows_.label = keep(label_, std::span<const std::int32_t>(data.label));
    if (!data.target.empty()) rows_.target = keep(target_, std::span<const double>(data.target));
  }
  [[nodiscard]] const DeviceRows<T>& rows() const { return rows_; }
  [[nodiscard]] std::size_t size_bytes() const {
    return (dense_.size() + scale_.size() + shift_.size() + value_.size()) * sizeof(T) + pixels_.size() +
           (row_begin_.size() + target_.size()) * sizeof(std::uint64_t) +
           (column_.size() + token_.size() + label_.size()) * sizeof(std::uint32_t);
  }

 private:
  DeviceRows<T> rows_;
  Buffer<T> dense_, scale_, shift_, value_;
  Buffer<std::uint8_t> pixels_;
  Buffer<std::uint64_t> row_begin_;
  Buffer<std::uint32_t> column_;
  Buffer<std::int32_t> token_, label_;
  Buffer<double> target_;
};

// Returns the data on the GPU: one copy, shared by all holders that exist at the same time.
template <class T>
[[nodiscard]] std::shared_ptr<const DeviceData<T>> on_device(const Dataset<T>& data);

// Makes a network's inputs from rows and computes the losses of its outputs. A row makes `per_row` examples: itself, and as many pairs of
// ratings as the form has negatives.
template <class T>
class DeviceExamples {
 public:
  DeviceExamples(const NetworkForm& form, const Dataset<T>& data);
  [[nodiscard]] std::size_t per_row() const { return 1 + negatives_; }
  [[nodiscard]] const DeviceRows<T>& rows() const { return data_->rows(); }
  [[nodiscard]] bool draws() const { return negatives_ > 0 || !data_->rows().augment.is_none(); }  // random numbers, for a minibatch
  [[nodiscard]] std::size_t size_bytes() const { return data_->size_bytes() + met_.size() * sizeof(std::int32_t); }

  // Fills in [clients,B,per_row,n], with zeros at positions without a row. `random` [clients] are the minibatches' random streams, and
  // `first` is the position of the first of the B rows in its minibatch. Null: the examples depend on the rows alone
  // (Dataset::gather_changed and gather, NeuralModel::make_examples).
  void make(const Exec& exec, const std::uint32_t* row, std::size_t clients, std::size_t B, const RandomStream* random, std::size_t first,
            T* in) const;
  // Writes d [clients,B,per_row,outputs] = scale_k times the derivative of the rows' losses by z; 0 at positions without a row.
  void slopes(const Exec& exec, const std::uint32_t* row, std::size_t clients, std::size_t B, const double* scale, const T* z, T* d) const;
  // Writes value [places] = the rows' losses and correct [places] = the number of a row's labels that equal the index of the largest z (the
  // first of equal ones). Both are zero without a row.
  void losses(const Exec& exec, const std::uint32_t* row, std::size_t places, const T* z, double* value, std::uint32_t* correct) const;

 private:
  NetworkForm::Loss loss_;
  std::size_t outputs_, negatives_, num_items_ = 0;
  std::shared_ptr<const DeviceData<T>> data_;
  Buffer<std::int32_t> met_;         // items that users have rated, user by user
  Buffer<std::uint64_t> met_begin_;  // [users + 1]
};

}  // namespace fl::cuda
