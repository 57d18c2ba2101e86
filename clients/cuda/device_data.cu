#include <math.h>

#include <map>
#include <mutex>

#include "clients/cuda/device_data.cuh"
#include "clients/cuda/layers/sums.cuh"
#include "fl_core/data/image_change.hpp"
#include "fl_core/data/interactions.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostSparseFeatures = 4096;  // gathering makes sparse rows dense

// Uses a warp per position.
template <class T>
__global__ void gather(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, T* out) {
  const std::size_t D = data.num_features;
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t place = thread_index() / kWarp; place < places; place += num_threads() / kWarp) {
    const std::size_t r = row[place];
    T* to = out + place * D;
    if (r == kNoRow || data.sparse.row_begin != nullptr) {
      for (std::size_t j = lane; j < D; j += kWarp) to[j] = T(0);
      if (r == kNoRow) continue;
    }
    if (data.token != nullptr) {
      for (std::size_t j = lane; j < D; j += kWarp) to[j] = static_cast<T>(data.token[r * D + j]);
    } else if (data.pixels != nullptr) {
      for (std::size_t j = lane; j < D; j += kWarp) {
        const auto channel = static_cast<std::uint32_t>(j) / static_cast<std::uint32_t>(data.plane);
        to[j] = data.scale[channel] * static_cast<T>(data.pixels[r * D + j]) + data.shift[channel];
      }
    } else if (data.dense != nullptr) {
      for (std::size_t j = lane; j < D; j += kWarp) to[j] = data.dense[r * data.stride + j];
    } else {
      __syncwarp();  // the zeros are written
      for (std::size_t i = data.sparse.row_begin[r] + lane; i < data.sparse.row_begin[r + 1]; i += kWarp)
        to[data.sparse.column[i]] = data.sparse.value == nullptr ? T(1) : data.sparse.value[i];
    }
  }
}

// Uses a warp per position; for images alone.
template <class T>
__global__ void gather_images(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, const RandomStream* random,
                              std::size_t first, T* out) {
  const std::size_t D = data.num_features, plane = data.plane;
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t place = thread_index() / kWarp; place < places; place += num_threads() / kWarp) {
    const std::size_t r = row[place], k = place / B;
    T* to = out + place * D;
    if (r == kNoRow) {
      for (std::size_t j = lane; j < D; j += kWarp) to[j] = T(0);
      continue;
    }
    const ImageChange change(data.augment.crop, data.augment.flip, numbers_of_images(random[k]),
                             static_cast<std::uint32_t>(first + place - k * B));
    for (std::size_t j = lane; j < D; j += kWarp) {
      const std::size_t channel = j / plane, pixel = j - channel * plane, y = pixel / data.width;
      const std::size_t from = change.source(y, pixel - y * data.width, data.height, data.width);
      const T shift = data.shift[channel];
      to[j] = from < plane ? data.scale[channel] * static_cast<T>(data.pixels[r * D + channel * plane + from]) + shift : shift;
    }
  }
}

// Uses a thread per position. Writes {user, item} of the row, then pairs of the user with other items. met_begin [users + 1] gives the
// users' ranges in `met`.
template <class T>
__global__ void make_pairs(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, std::size_t negatives,
                           const std::int32_t* met, const std::uint64_t* met_begin, std::size_t num_users, std::size_t num_items,
                           const RandomStream* random, std::size_t first, T* out) {
  for (std::size_t place = thread_index(); place < places; place += num_threads()) {
    const std::uint32_t r = row[place];
    T* to = out + place * (1 + negatives) * 2;
    const std::size_t k = place / B, from = random != nullptr ? (first + place - k * B) * negatives : 0;
    const std::int32_t *pair = data.token + (r == kNoRow ? 0 : std::size_t{r} * 2), first_item = static_cast<std::int32_t>(num_users);
    const auto user = static_cast<std::size_t>(pair[0]);
    const MetItems items{met + met_begin[user], met_begin[user + 1] - met_begin[user], num_items};
    const RandomStream stream = random != nullptr ? numbers_of_negatives(random[k]) : fixed_numbers_of_negatives(r);
    for (std::size_t e = 0; e <= negatives; ++e, to += 2) {
      to[0] = r == kNoRow ? T(0) : static_cast<T>(pair[0]);
      to[1] = r == kNoRow ? T(0)
              : e == 0    ? static_cast<T>(pair[1])
                          : static_cast<T>(first_item + items.draw_unmet(pair[1] - first_item, stream.bits(from + e - 1)));
    }
  }
}

// Returns the largest of the lanes' numbers to every lane.
template <class T>
__device__ T warp_largest(T x) {
  for (unsigned width = kWarp / 2; width > 0; width /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, x, static_cast<int>(width));
    x = other > x ? other : x;
  }
  return x;
}

// Returns sum_c exp(x_c - largest) to every lane.
template <class T>
__device__ double sum_of_exp(const T* x, std::size_t C, unsigned lane, T& largest) {
  largest = x[0];
  for (std::size_t c = lane; c < C; c += kWarp) largest = x[c] > largest ? x[c] : largest;
  largest = warp_largest(largest);
  double sum = 0;
  for (std::size_t c = lane; c < C; c += kWarp) sum += static_cast<double>(exp(x[c] - largest));
  return warp_sum(sum);
}

// Returns the label of a row at one of its positions.
template <class T>
__device__ std::size_t label_at(const DeviceRows<T>& data, std::size_t r, std::size_t position) {
  return static_cast<std::size_t>(position + 1 < data.num_labels ? data.token[r * data.num_features + position + 1] : data.label[r]);
}
// Returns the target of a row for losses of one number.
template <class T>
__device__ double target_of(const DeviceRows<T>& data, std::size_t r) {
  return data.target != nullptr ? data.target[r] : static_cast<double>(data.label[r]);
}

// Uses a warp per row and label position, for C classes.
template <class T>
__global__ void softmax_slopes(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, std::size_t C,
                               const double* scale, const T* z, T* d) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t L = data.num_labels;
  for (std::size_t i = thread_index() / kWarp; i < places * L; i += num_threads() / kWarp) {
    const T* x = z + i * C;
    T* slope = d + i * C;
    const std::size_t place = i / L;
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      for (std::size_t c = lane; c < C; c += kWarp) slope[c] = T(0);
      continue;
    }
    T largest;
    const double sum = sum_of_exp(x, C, lane, largest), share = scale[place / B] * (1 / static_cast<double>(L));
    const T factor = static_cast<T>(share / sum);
    const std::size_t right = label_at(data, r, i - place * L);
    for (std::size_t c = lane; c < C; c += kWarp) slope[c] = exp(x[c] - largest) * factor - (c == right ? static_cast<T>(share) : T(0));
  }
}

// Computes the same for one output and a numeric target. If a row has several examples, the target is 1 for the first of E examples and 0
// for the others.
template <class T>
__global__ void logistic_slopes(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, std::size_t E,
                                const double* scale, const T* z, T* d) {
  for (std::size_t i = thread_index(); i < places * E; i += num_threads()) {
    const std::size_t place = i / E;
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      d[i] = T(0);
      continue;
    }
    const double target = E > 1 ? (i == place * E ? 1 : 0) : target_of(data, r), share = scale[place / B] * (1 / static_cast<double>(E));
    d[i] = static_cast<T>(share * (1 / (1 + exp(-static_cast<double>(z[i]))) - target));
  }
}

// Computes the same for `weight` times the squares of C outputs minus the target.
template <class T>
__global__ void squared_slopes(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, std::size_t C,
                               double weight, const double* scale, const T* z, T* d) {
  for (std::size_t i = thread_index(); i < places * C; i += num_threads()) {
    const std::size_t place = i / C;
    const std::uint32_t r = row[place];
    d[i] = r == kNoRow ? T(0) : static_cast<T>(scale[place / B] * weight * 2 * (static_cast<double>(z[i]) - target_of(data, r)));
  }
}

// Computes losses and the number of correct labels. Uses a warp per position.
template <class T>
__global__ void softmax_losses(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t C, const T* z, double* value,
                               std::uint32_t* correct) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t L = data.num_labels;
  for (std::size_t place = thread_index() / kWarp; place < places; place += num_threads() / kWarp) {
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      if (lane == 0) value[place] = correct[place] = 0;
      continue;
    }
    double total = 0;
    std::uint32_t num_right = 0;
    for (std::size_t position = 0; position < L; ++position) {
      const T* x = z + (place * L + position) * C;
      T largest;
      const double sum = sum_of_exp(x, C, lane, largest);
      const std::size_t right = label_at(data, r, position);
      std::uint32_t above = 0;  // entries that come before the label's entry in descending order
      for (std::size_t c = lane; c < C; c += kWarp) above += c < right ? !(x[c] < x[right]) : x[right] < x[c];
      above = __reduce_add_sync(kAllLanes, above);
      total += log(sum) + static_cast<double>(largest) - static_cast<double>(x[right]);
      num_right += above == 0 ? 1 : 0;
    }
    if (lane > 0) continue;
    value[place] = total / static_cast<double>(L);
    correct[place] = num_right;
  }
}

template <class T>
__global__ void logistic_losses(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t E, const T* z, double* value,
                                std::uint32_t* correct) {
  for (std::size_t place = thread_index(); place < places; place += num_threads()) {
    const std::uint32_t r = row[place];
    double total = 0;
    std::uint32_t num_right = 0;
    for (std::size_t e = 0; r != kNoRow && e < E; ++e) {
      const double margin = static_cast<double>(z[place * E + e]), target = E > 1 ? (e == 0 ? 1 : 0) : target_of(data, r);
      total += log1p(exp(-fabs(margin))) + (margin > 0 ? margin : 0) - target * margin;
      num_right += (margin > 0) == (target > 0.5) ? 1 : 0;
    }
    value[place] = total * (1 / static_cast<double>(E));
    correct[place] = num_right;
  }
}

template <class T>
__global__ void squared_losses(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t C, double weight, const T* z,
                               double* value, std::uint32_t* correct) {
  for (std::size_t place = thread_index(); place < places; place += num_threads()) {
    const std::uint32_t r = row[place];
    double sum = 0;
    for (std::size_t c = 0; r != kNoRow && c < C; ++c) {
      const double off = static_cast<double>(z[place * C + c]) - target_of(data, r);
      sum += weight * off * off;
    }
    value[place] = sum;
    correct[place] = 0;
  }
}

// Returns the weight of each output's square.
double weight_of(NetworkForm::Loss loss, std::size_t C) {
  return (loss == NetworkForm::Loss::half_squared ? 0.5 : 1.0) / static_cast<double>(C);
}

}  // namespace

template <class T>
bool can_lie_on_device(const Dataset<T>& data) {
  if (data.label.empty() && data.target.empty()) return false;
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
DeviceExamples<T>::DeviceExamples(const NetworkForm& form, const Dataset<T>& data)
    : loss_(form.loss), outputs_(form.layers.back().outputs), negatives_(form.negatives), data_(on_device(data)) {
  if (negatives_ == 0) return;
  std::vector<std::int32_t> met;
  std::vector<std::uint64_t> begin{0};
  for (std::size_t user = 0; user < form.met->num_users(); ++user) {
    const MetItems items = form.met->of(user);
    met.insert(met.end(), items.met, items.met + items.count);
    begin.push_back(met.size());
  }
  num_items_ = form.met->num_items();
  keep(met_, std::span<const std::int32_t>(met));
  keep(met_begin_, std::span<const std::uint64_t>(begin));
}

template <class T>
void DeviceExamples<T>::make(const Exec& exec, const std::uint32_t* row, std::size_t clients, std::size_t B, const RandomStream* random,
                             std::size_t first, T* in) const {
  const std::size_t places = clients * B;
  const DeviceRows<T>& data = data_->rows();
  if (negatives_ > 0)
    Launch(exec, "make_pairs", blocks_for(places))(make_pairs<T>, data, row, places, B, negatives_, met_.data(), met_begin_.data(),
                                                   met_begin_.size() - 1, num_items_, random, first, in);
  else if (random != nullptr && !data.augment.is_none())
    Launch(exec, "gather_images", blocks_for(places * kWarp))(gather_images<T>, data, row, places, B, random, first, in);
  else
    Launch(exec, "gather_features", blocks_for(places * kWarp))(gather<T>, data, row, places, in);
}

template <class T>
void DeviceExamples<T>::slopes(const Exec& exec, const std::uint32_t* row, std::size_t clients, std::size_t B, const double* scale,
                               const T* z, T* d) const {
  const DeviceRows<T>& data = data_->rows();
  const std::size_t places = clients * B, L = data.num_labels, C = outputs_, E = per_row();
  if (loss_ == NetworkForm::Loss::softmax)
    Launch(exec, "softmax_slopes", blocks_for(places * L * kWarp))(softmax_slopes<T>, data, row, places, B, C / L, scale, z, d);
  else if (loss_ == NetworkForm::Loss::logistic)
    Launch(exec, "logistic_slopes", blocks_for(places * E))(logistic_slopes<T>, data, row, places, B, E, scale, z, d);
  else
    Launch(exec, "squared_slopes", blocks_for(places * C))(squared_slopes<T>, data, row, places, B, C, weight_of(loss_, C), scale, z, d);
}

template <class T>
void DeviceExamples<T>::losses(const Exec& exec, const std::uint32_t* row, std::size_t places, const T* z, double* value,
                               std::uint32_t* correct) const {
  const DeviceRows<T>& data = data_->rows();
  const std::size_t C = outputs_;
  if (loss_ == NetworkForm::Loss::softmax)
    Launch(exec, "softmax_losses", blocks_for(places * kWarp))(softmax_losses<T>, data, row, places, C / data.num_labels, z, value,
                                                               correct);
  else if (loss_ == NetworkForm::Loss::logistic)
    Launch(exec, "logistic_losses", blocks_for(places))(logistic_losses<T>, data, row, places, per_row(), z, value, correct);
  else
    Launch(exec, "squared_losses", blocks_for(places))(squared_losses<T>, data, row, places, C, weight_of(loss_, C), z, value, correct);
}

template bool can_lie_on_device<float>(const Dataset<float>&);
template bool can_lie_on_device<double>(const Dataset<double>&);
template class DeviceExamples<float>;
template class DeviceExamples<double>;

}  // namespace fl::cuda
