#include <math.h>

#include <algorithm>

#include "clients/cuda/regression.hpp"
#include "fl_core/cuda/check.cuh"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostBlockBytes = 96 * 1024;  // two blocks of threads fit a multiprocessor of sm_80 and sm_90
constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp;
constexpr unsigned kRowsAtOnce = 4;  // of a warp: a parameter that was read serves so many rows

template <class T>
[[nodiscard]] std::size_t block_bytes(const RegressionForm& form, std::size_t most_rows) {
  return (form.size() + most_rows * form.outputs) * sizeof(T);
}

// The features of one row.
template <class T>
struct Features {
  const T* dense;
  const std::uint8_t* pixels;
  __device__ Features(const DeviceRows<T>& data, std::size_t row)
      : dense(data.dense == nullptr ? nullptr : data.dense + row * data.stride),
        pixels(data.pixels == nullptr ? nullptr : data.pixels + row * data.num_features) {}
  // Feature j, a pixel of a channel with this scale and shift.
  [[nodiscard]] __device__ T at(std::uint32_t j, T scale, T shift) const {
    return dense != nullptr ? dense[j] : scale * static_cast<T>(pixels[j]) + shift;
  }
};
// What a pixel of feature j is scaled with.
template <class T>
struct Shade {
  T scale = T(1), shift = T(0);
  __device__ Shade(const DeviceRows<T>& data, std::uint32_t j) {
    if (data.pixels == nullptr) return;
    const auto channel = j < data.plane ? 0 : j / static_cast<std::uint32_t>(data.plane);
    scale = data.scale[channel];
    shift = data.shift[channel];
  }
};

template <class T>
__device__ T sum_of_lanes(T x) {
  for (unsigned width = kWarp / 2; width > 0; width /= 2) x += __shfl_xor_sync(kAllLanes, x, static_cast<int>(width));
  return x;
}
template <class T>
__device__ T largest_of_lanes(T x) {
  for (unsigned width = kWarp / 2; width > 0; width /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, x, static_cast<int>(width));
    x = other > x ? other : x;
  }
  return x;
}

// One client's parameters and the slopes of its minibatch by the outputs, in the block's memory.
template <class T>
struct Place {
  RegressionForm form;
  T* y;  // [P]
  T* d;  // [rows,outputs]
  [[nodiscard]] __device__ T* bias() const { return y + form.outputs * form.inputs; }
};

// Outputs of kRowsAtOnce rows from `first` on into place.d; a warp. kClasses of them at a time.
template <class T, unsigned kClasses>
__device__ void outputs_of_rows(const Place<T>& place, const DeviceRows<T>& data, const std::uint32_t* row, std::uint32_t B,
                                std::uint32_t first, unsigned lane) {
  const auto D = static_cast<std::uint32_t>(place.form.inputs), C = static_cast<std::uint32_t>(place.form.outputs);
  const std::uint32_t here = B - first < kRowsAtOnce ? B - first : kRowsAtOnce;
  const auto features = [&](unsigned i) { return Features<T>(data, row[i < here ? first + i : first]); };
  const Features<T> of_row[kRowsAtOnce] = {features(0), features(1), features(2), features(3)};
  static_assert(kRowsAtOnce == 4);
  for (std::uint32_t from = 0; from < C; from += kClasses) {
    T sum[kRowsAtOnce][kClasses] = {};
    const std::uint32_t classes = C - from < kClasses ? C - from : kClasses;
    const T* W = place.y + std::size_t{from} * D;
    for (std::uint32_t j = lane; j < D; j += kWarp) {
      T x[kRowsAtOnce];
      const Shade<T> shade(data, j);
      FL_UNROLL
      for (unsigned i = 0; i < kRowsAtOnce; ++i) x[i] = of_row[i].at(j, shade.scale, shade.shift);
      FL_UNROLL
      for (unsigned c = 0; c < kClasses; ++c) {
        if (c >= classes) break;
        const T weight = W[c * D + j];
        FL_UNROLL
        for (unsigned i = 0; i < kRowsAtOnce; ++i) sum[i][c] = fma(x[i], weight, sum[i][c]);
      }
    }
    FL_UNROLL
    for (unsigned i = 0; i < kRowsAtOnce; ++i) FL_UNROLL
    for (unsigned c = 0; c < kClasses; ++c) {
      const T z = sum_of_lanes(sum[i][c]);
      if (lane == 0 && i < here && c < classes)
        place.d[std::size_t{first + i} * C + from + c] = place.form.bias ? z + place.bias()[from + c] : z;
    }
  }
}

// Outputs become slopes of the loss, `share` times; a warp.
template <class T>
__device__ void slopes_of_rows(const Place<T>& place, const DeviceRows<T>& data, const std::uint32_t* row, std::uint32_t B,
                               std::uint32_t first, double share, unsigned lane) {
  const auto C = static_cast<std::uint32_t>(place.form.outputs);
  const std::uint32_t end = B - first < kRowsAtOnce ? B : first + kRowsAtOnce;
  if (place.form.loss != NetworkForm::Loss::softmax) {
    for (std::uint32_t at = first * C + lane; at < end * C; at += kWarp) {
      const std::uint32_t r = row[at / C];
      const double z = static_cast<double>(place.d[at]),
                   target = data.target != nullptr ? data.target[r] : static_cast<double>(data.label[r]);
      const double of_loss = place.form.loss == NetworkForm::Loss::logistic  ? 1 / (1 + exp(-z)) - target
                             : place.form.loss == NetworkForm::Loss::squared ? 2 * (z - target) / C
                                                                             : (z - target) / C;
      place.d[at] = static_cast<T>(share * of_loss);
    }
    return;
  }
  for (std::uint32_t b = first; b < end; ++b) {
    T* z = place.d + std::size_t{b} * C;
    T largest = z[0];
    for (std::uint32_t c = lane; c < C; c += kWarp) largest = z[c] > largest ? z[c] : largest;
    largest = largest_of_lanes(largest);
    double sum = 0;
    for (std::uint32_t c = lane; c < C; c += kWarp) sum += static_cast<double>(exp(z[c] - largest));
    const T factor = static_cast<T>(share / sum_of_lanes(sum));
    const auto right = static_cast<std::uint32_t>(data.label[row[b]]);
    for (std::uint32_t c = lane; c < C; c += kWarp) z[c] = exp(z[c] - largest) * factor - (c == right ? static_cast<T>(share) : T(0));
  }
}

// One step of the parameters from the slopes; a thread has the columns of some features.
template <class T, unsigned kClasses>
__device__ void move(const Place<T>& place, const DeviceRows<T>& data, const std::uint32_t* row, std::uint32_t B,
                     const DescentStep<T>& step, const Regulariser& regulariser, T* v) {
  const auto D = static_cast<std::uint32_t>(place.form.inputs), C = static_cast<std::uint32_t>(place.form.outputs);
  const auto take = [&](std::size_t at, T g) {
    T& y = place.y[at];
    if (regulariser.l2 != 0 || regulariser.nonconvex != 0) g += static_cast<T>(regulariser.derivative(static_cast<double>(y)));
    y = step.taken(at, g, y, v == nullptr ? nullptr : v + at);
  };
  for (std::uint32_t from = 0; from < C; from += kClasses) {
    const std::uint32_t classes = C - from < kClasses ? C - from : kClasses;
    for (std::uint32_t j = threadIdx.x; j < D; j += kThreads) {
      T g[kClasses] = {};
      const Shade<T> shade(data, j);
      for (std::uint32_t b = 0; b < B; ++b) {
        const T x = Features<T>(data, row[b]).at(j, shade.scale, shade.shift);
        const T* d = place.d + std::size_t{b} * C + from;
        FL_UNROLL
        for (unsigned c = 0; c < kClasses; ++c)
          if (c < classes) g[c] = fma(d[c], x, g[c]);
      }
      FL_UNROLL
      for (unsigned c = 0; c < kClasses; ++c)
        if (c < classes) take(std::size_t{from + c} * D + j, g[c]);
    }
  }
  if (!place.form.bias) return;
  for (std::uint32_t c = threadIdx.x; c < C; c += kThreads) {
    T g = T(0);
    for (std::uint32_t b = 0; b < B; ++b) g += place.d[std::size_t{b} * C + c];
    take(std::size_t{C} * D + c, g);
  }
}

// Block k: client k. y: [clients,P]
template <class T, unsigned kClasses>
__global__ void __launch_bounds__(kThreads) descend(RegressionForm form, DeviceRows<T> data, RegressionBatches batches, std::size_t clients,
                                                    DescentStep<T> step, Regulariser regulariser, T* v, T* y) {
  FL_BLOCK_MEMORY(T, memory);
  const std::size_t P = form.size();
  const Place<T> place{form, memory, memory + P};
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (std::size_t k = blockIdx.x; k < clients; k += gridDim.x) {
    for (std::size_t j = threadIdx.x; j < P; j += kThreads) place.y[j] = step.w[j];
    __syncthreads();
    for (std::uint32_t t = 0; t < batches.count[k]; ++t) {
      const std::uint64_t begin = batches.begin[t * batches.stride + k];
      const auto B = static_cast<std::uint32_t>(batches.begin[t * batches.stride + k + 1] - begin);
      const std::uint32_t* row = batches.rows + begin;
      for (std::uint32_t first = warp * kRowsAtOnce; first < B; first += kWarps * kRowsAtOnce) {
        outputs_of_rows<T, kClasses>(place, data, row, B, first, lane);
        __syncwarp();
        slopes_of_rows(place, data, row, B, first, 1 / static_cast<double>(B), lane);
        __syncwarp();
      }
      __syncthreads();
      move<T, kClasses>(place, data, row, B, step, regulariser, v == nullptr ? nullptr : v + k * P);
      __syncthreads();
    }
    for (std::size_t j = threadIdx.x; j < P; j += kThreads) y[k * P + j] = place.y[j];
    __syncthreads();
  }
}

}  // namespace

template <class T>
std::optional<RegressionForm> as_regression(const NetworkForm& form, std::size_t most_rows) {
  std::optional<RegressionForm> found;
  if (form.negatives > 0) return std::nullopt;
  for (const NetworkForm::Layer& layer : form.layers) {
    if (std::holds_alternative<form::Flatten>(layer.form)) continue;
    const auto* dense = std::get_if<form::Dense>(&layer.form);
    if (dense == nullptr || dense->positions != 1 || found) return std::nullopt;
    found = RegressionForm{dense->inputs, dense->outputs, dense->bias, form.loss};
  }
  return found && block_bytes<T>(*found, most_rows) <= kMostBlockBytes ? found : std::nullopt;
}

template <class T>
void descend_regression(const Exec& exec, const RegressionForm& form, const DeviceRows<T>& data, const RegressionBatches& batches,
                        std::size_t most_rows, std::size_t clients, const DescentStep<T>& step, const Regulariser& regulariser, T* v,
                        T* y) {
  const auto start = [&]<unsigned kClasses>() {
    Launch(exec, "descend_regression", clients, static_cast<int>(kThreads))
        .with_shared(block_bytes<T>(form, most_rows))(descend<T, kClasses>, form, data, batches, clients, step, regulariser, v, y);
  };
  if (form.outputs == 1)
    start.template operator()<1>();
  else if (form.outputs <= 4)
    start.template operator()<4>();
  else if (form.outputs <= 10)
    start.template operator()<10>();
  else
    start.template operator()<16>();
}

#define FL_INSTANTIATE(T)                                                                                                              \
  template std::optional<RegressionForm> as_regression<T>(const NetworkForm&, std::size_t);                                            \
  template void descend_regression<T>(const Exec&, const RegressionForm&, const DeviceRows<T>&, const RegressionBatches&, std::size_t, \
                                      std::size_t, const DescentStep<T>&, const Regulariser&, T*, T*);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
