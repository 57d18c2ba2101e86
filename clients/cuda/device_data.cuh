// A data set on the GPU, and what kernels read of it: features of minibatches, and losses with their slopes.
//
// A place of a minibatch holds a row or kNoRow.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "clients/network_form.hpp"
#include "fl_core/buffer.hpp"
#include "fl_core/dataset.hpp"
#include "fl_core/exec.hpp"

namespace fl::cuda {

inline constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;

// A data set on the GPU; one kind of rows is there.
template <class T>
struct DeviceRows {
  std::size_t num_features = 0, stride = 0;
  const T* dense = nullptr;
  const std::uint8_t* pixels = nullptr;
  const T *scale = nullptr, *shift = nullptr;  // of a channel's pixels
  std::size_t plane = 0;                       // pixels of a channel
  const std::uint64_t* row_begin = nullptr;
  const std::uint32_t* column = nullptr;
  const T* value = nullptr;  // null: all ones
  const std::int32_t* label = nullptr;
};

// Dense rows, images as bytes that are not changed at random, and sparse rows of up to 4096 features; one label per row.
template <class T>
[[nodiscard]] bool can_lie_on_device(const Dataset<T>& data);

template <class T>
class DeviceData {
 public:
  explicit DeviceData(const Dataset<T>& data) {
    rows_.num_features = data.num_features;
    if (data.has_pixels()) {
      const std::size_t channels = data.shape.size() == 3 ? data.shape[0] : 1;
      std::vector<T> scale, shift;
      for (std::size_t c = 0; c < channels; ++c) {
        const double mean = data.pixel_mean.empty() ? 0 : data.pixel_mean[c];
        const double deviation = data.pixel_deviation.empty() ? 1 : data.pixel_deviation[c];
        scale.push_back(static_cast<T>(1 / (255 * deviation)));
        shift.push_back(static_cast<T>(-mean / deviation));
      }
      rows_.plane = data.num_features / channels;
      rows_.pixels = keep(pixels_, data.pixels.span());
      rows_.scale = keep(scale_, std::span<const T>(scale));
      rows_.shift = keep(shift_, std::span<const T>(shift));
    } else if (data.is_sparse) {
      rows_.row_begin = keep(row_begin_, data.row_begin.span());
      rows_.column = keep(column_, data.column.span());
      if (!data.all_ones()) rows_.value = keep(value_, data.value.span());
    } else {
      rows_.stride = data.dense_stride();
      rows_.dense = keep(dense_, data.dense.span());
    }
    rows_.label = keep(label_, std::span<const std::int32_t>(data.label));
  }
  [[nodiscard]] const DeviceRows<T>& rows() const { return rows_; }
  [[nodiscard]] std::size_t size_bytes() const {
    return (dense_.size() + scale_.size() + shift_.size() + value_.size()) * sizeof(T) + pixels_.size() +
           row_begin_.size() * sizeof(std::uint64_t) + column_.size() * sizeof(std::uint32_t) + label_.size() * sizeof(std::int32_t);
  }

 private:
  template <class U>
  static const U* keep(Buffer<U>& there, std::span<const U> here) {
    there = Buffer<U>(here.size(), Device::cuda);
    const DeviceStream stream(Device::cuda);  // lets no other one wait
    ::fl::copy_bytes(there.data(), Device::cuda, here.data(), Device::cpu, here.size_bytes(), stream.get());
    return there.data();
  }
  DeviceRows<T> rows_;
  Buffer<T> dense_, scale_, shift_, value_;
  Buffer<std::uint8_t> pixels_;
  Buffer<std::uint64_t> row_begin_;
  Buffer<std::uint32_t> column_;
  Buffer<std::int32_t> label_;
};

// The data on the GPU: one copy for all who hold it at the same time.
template <class T>
[[nodiscard]] std::shared_ptr<const DeviceData<T>> on_device(const Dataset<T>& data);

// out [places,D] = the features of row[place]; zeros where there is none.
template <class T>
void gather_features(const Exec& exec, const DeviceRows<T>& data, const std::uint32_t* row, std::size_t places, T* out);

// d [clients,B,C] = scale_k times the derivative of the rows' losses by z; 0 where there is no row.
template <class T>
void loss_slopes(const Exec& exec, NetworkForm::Loss loss, const DeviceRows<T>& data, const std::uint32_t* row, std::size_t clients,
                 std::size_t B, std::size_t C, const double* scale, const T* z, T* d);

// value [places] = the rows' losses, correct [places] = whether the largest of z (the first of equal ones) is the label; zeros without a
// row.
template <class T>
void losses(const Exec& exec, NetworkForm::Loss loss, const DeviceRows<T>& data, const std::uint32_t* row, std::size_t places,
            std::size_t C, const T* z, double* value, std::uint32_t* correct);

}  // namespace fl::cuda
