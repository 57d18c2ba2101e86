#include <math.h>

#include <map>
#include <mutex>

#include "clients/cuda/device_data.cuh"
#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/memory.hpp"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostSparseFeatures = 4096;  // sparse rows become dense ones when they are gathered

// A warp per place.
template <class T>
__global__ void gather(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, T* out) {
  const std::size_t D = data.num_features;
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t place = thread_index() / kWarp; place < places; place += num_threads() / kWarp) {
    const std::size_t r = row[place];
    T* to = out + place * D;
    if (r == kNoRow || data.row_begin != nullptr) {
      for (std::size_t j = lane; j < D; j += kWarp) to[j] = T(0);
      if (r == kNoRow) continue;
    }
    if (data.pixels != nullptr) {
      for (std::size_t j = lane; j < D; j += kWarp)
        to[j] = data.scale[j / data.plane] * static_cast<T>(data.pixels[r * D + j]) + data.shift[j / data.plane];
    } else if (data.dense != nullptr) {
      for (std::size_t j = lane; j < D; j += kWarp) to[j] = data.dense[r * data.stride + j];
    } else {
      __syncwarp();  // the zeros are written
      for (std::size_t i = data.row_begin[r] + lane; i < data.row_begin[r + 1]; i += kWarp)
        to[data.column[i]] = data.value == nullptr ? T(1) : data.value[i];
    }
  }
}

// The sum and the largest of the lanes' numbers, for every lane, in a fixed order.
template <class T>
__device__ T warp_sum(T x) {
  for (unsigned width = kWarp / 2; width > 0; width /= 2) x += __shfl_xor_sync(kAllLanes, x, static_cast<int>(width));
  return x;
}
template <class T>
__device__ T warp_largest(T x) {
  for (unsigned width = kWarp / 2; width > 0; width /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, x, static_cast<int>(width));
    x = other > x ? other : x;
  }
  return x;
}

// sum_c exp(x_c - largest), for every lane.
template <class T>
__device__ double sum_of_exp(const T* x, std::size_t C, unsigned lane, T& largest) {
  largest = x[0];
  for (std::size_t c = lane; c < C; c += kWarp) largest = x[c] > largest ? x[c] : largest;
  largest = warp_largest(largest);
  double sum = 0;
  for (std::size_t c = lane; c < C; c += kWarp) sum += static_cast<double>(exp(x[c] - largest));
  return warp_sum(sum);
}

// A warp per place.
template <class T>
__global__ void softmax_slopes(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, std::size_t C,
                               const double* scale, const T* z, T* d) {
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t place = thread_index() / kWarp; place < places; place += num_threads() / kWarp) {
    const T* x = z + place * C;
    T* slope = d + place * C;
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      for (std::size_t c = lane; c < C; c += kWarp) slope[c] = T(0);
      continue;
    }
    T largest;
    const double sum = sum_of_exp(x, C, lane, largest), share = scale[place / B];
    const T factor = static_cast<T>(share / sum);
    const auto right = static_cast<std::size_t>(data.label[r]);
    for (std::size_t c = lane; c < C; c += kWarp) slope[c] = exp(x[c] - largest) * factor - (c == right ? static_cast<T>(share) : T(0));
  }
}

// The same for one output and the labels -1 (class 0) and +1.
template <class T>
__global__ void logistic_slopes(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, const double* scale,
                                const T* z, T* d) {
  for (std::size_t place = thread_index(); place < places; place += num_threads()) {
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      d[place] = T(0);
      continue;
    }
    const double margin = static_cast<double>(z[place]), target = data.label[r] == 1 ? 1.0 : 0.0;
    d[place] = static_cast<T>(scale[place / B] * (1 / (1 + exp(-margin)) - target));
  }
}

// The same of losses and of what is right. A warp per place.
template <class T>
__global__ void softmax_losses(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t C, const T* z, double* value,
                               std::uint32_t* correct) {
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t place = thread_index() / kWarp; place < places; place += num_threads() / kWarp) {
    const T* x = z + place * C;
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      if (lane == 0) value[place] = correct[place] = 0;
      continue;
    }
    T largest;
    const double sum = sum_of_exp(x, C, lane, largest);
    const auto right = static_cast<std::size_t>(data.label[r]);
    std::uint32_t above = 0;  // entries before which the label's does not come
    for (std::size_t c = lane; c < C; c += kWarp) above += c < right ? !(x[c] < x[right]) : x[right] < x[c];
    above = __reduce_add_sync(kAllLanes, above);
    if (lane > 0) continue;
    value[place] = log(sum) + static_cast<double>(largest) - static_cast<double>(x[right]);
    correct[place] = above == 0 ? 1 : 0;
  }
}

template <class T>
__global__ void logistic_losses(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, const T* z, double* value,
                                std::uint32_t* correct) {
  for (std::size_t place = thread_index(); place < places; place += num_threads()) {
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      value[place] = correct[place] = 0;
      continue;
    }
    const bool is_one = data.label[r] == 1;
    const double margin = static_cast<double>(z[place]), against = is_one ? -margin : margin;
    value[place] = against > 0 ? against + log1p(exp(-against)) : log1p(exp(against));
    correct[place] = (margin > 0) == is_one ? 1 : 0;
  }
}

}  // namespace

template <class T>
bool can_lie_on_device(const Dataset<T>& data) {
  if (data.num_classes < 2 || data.vocabulary > 0 || data.labels_per_row() > 1 || !data.augment.is_none()) return false;
  return !data.is_sparse || data.num_features <= kMostSparseFeatures;
}

template <class T>
std::shared_ptr<const DeviceData<T>> on_device(const Dataset<T>& data) {
  static std::mutex mutex;
  static std::map<const Dataset<T>*, std::weak_ptr<const DeviceData<T>>> held;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const DeviceData<T>> found = held[&data].lock();
  if (found == nullptr) held[&data] = found = std::make_shared<const DeviceData<T>>(data);
  return found;
}

template <class T>
void gather_features(const Exec& exec, const DeviceRows<T>& data, const std::uint32_t* row, std::size_t places, T* out) {
  Launch(exec, "gather_features", blocks_for(places * kWarp))(gather<T>, data, row, places, out);
}

template <class T>
void loss_slopes(const Exec& exec, NetworkForm::Loss loss, const DeviceRows<T>& data, const std::uint32_t* row, std::size_t clients,
                 std::size_t B, std::size_t C, const double* scale, const T* z, T* d) {
  const std::size_t places = clients * B;
  if (loss == NetworkForm::Loss::softmax)
    Launch(exec, "softmax_slopes", blocks_for(places * kWarp))(softmax_slopes<T>, data, row, places, B, C, scale, z, d);
  else
    Launch(exec, "logistic_slopes", blocks_for(places))(logistic_slopes<T>, data, row, places, B, scale, z, d);
}

template <class T>
void losses(const Exec& exec, NetworkForm::Loss loss, const DeviceRows<T>& data, const std::uint32_t* row, std::size_t places,
            std::size_t C, const T* z, double* value, std::uint32_t* correct) {
  if (loss == NetworkForm::Loss::softmax)
    Launch(exec, "softmax_losses", blocks_for(places * kWarp))(softmax_losses<T>, data, row, places, C, z, value, correct);
  else
    Launch(exec, "logistic_losses", blocks_for(places))(logistic_losses<T>, data, row, places, z, value, correct);
}

#define FL_INSTANTIATE(T)                                                                                                                 \
  template bool can_lie_on_device<T>(const Dataset<T>&);                                                                                  \
  template std::shared_ptr<const DeviceData<T>> on_device(const Dataset<T>&);                                                             \
  template void gather_features<T>(const Exec&, const DeviceRows<T>&, const std::uint32_t*, std::size_t, T*);                             \
  template void loss_slopes<T>(const Exec&, NetworkForm::Loss, const DeviceRows<T>&, const std::uint32_t*, std::size_t, std::size_t,      \
                               std::size_t, const double*, const T*, T*);                                                                 \
  template void losses<T>(const Exec&, NetworkForm::Loss, const DeviceRows<T>&, const std::uint32_t*, std::size_t, std::size_t, const T*, \
                          double*, std::uint32_t*);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
