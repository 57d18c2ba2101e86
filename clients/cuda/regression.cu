#include <math.h>

#include <algorithm>
#include <type_traits>

#include "clients/cuda/regression.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostSharedBytes = 96 * 1024;  // two blocks of threads fit a multiprocessor of sm_90; of sm_80, up to 81 KiB each
constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp;
constexpr unsigned kRowsAtOnce = 4;  // per warp: a loaded parameter serves this many rows
template <class T>
inline constexpr unsigned kFeaturesAtOnce = sizeof(T) == sizeof(float) ? 4 : 2;  // per thread: a loaded slope serves this many

template <class T>
[[nodiscard]] std::size_t shared_bytes(const RegressionForm& form, std::size_t most_rows) {
  return (form.size() + most_rows * form.outputs) * sizeof(T) + most_rows * sizeof(std::uint32_t);
}

// The features of one row as they lie in memory: numbers or pixels.
template <class T, bool kPixels>
struct Features {
  using Entry = std::conditional_t<kPixels, std::uint8_t, T>;
  const Entry* entry;
  __device__ Features(const DeviceRows<T>& data, std::size_t row) {
    if constexpr (kPixels)
      entry = data.pixels + row * data.num_features;
    else
      entry = data.dense + row * data.stride;
  }
};
// The conversion of an entry of feature j to a number.
template <class T, bool kPixels>
struct Shade {
  T scale = T(1), shift = T(0);
  Shade() = default;
  __device__ Shade(const DeviceRows<T>& data, std::uint32_t j) {
    if constexpr (kPixels) {
      const auto channel = j < data.plane ? 0 : j / static_cast<std::uint32_t>(data.plane);
      scale = data.scale[channel];
      shift = data.shift[channel];
    }
  }
  template <class Entry>
  [[nodiscard]] __device__ T of(Entry entry) const {
    if constexpr (kPixels)
      return scale * static_cast<T>(entry) + shift;
    else
      return entry;
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

// One client's parameters, and its minibatch's rows and slopes by the outputs, in the block's memory.
template <class T>
struct ClientScratch {
  RegressionForm form;
  T* y;                // [P]
  T* d;                // [rows,outputs]
  std::uint32_t* row;  // [rows]
  [[nodiscard]] __device__ T* bias() const { return y + form.outputs * form.inputs; }
};

// Calls use(is_one), where is_one says whether a number below kClasses is one of `classes`. Needs no comparison if all of them are.
template <unsigned kClasses, class Use>
__device__ void for_classes(std::uint32_t classes, const Use& use) {
  if (classes == kClasses)
    use([](unsigned) { return true; });
  else
    use([=](unsigned c) { return c < classes; });
}

// Computes with one warp the outputs of kRowsAtOnce rows from `first` on into scratch.d, kClasses outputs at a time.
template <class T, unsigned kClasses, bool kPixels>
__device__ void outputs_of_rows(const ClientScratch<T>& scratch, const DeviceRows<T>& data, std::uint32_t B, std::uint32_t first,
                                unsigned lane) {
  const auto D = static_cast<std::uint32_t>(scratch.form.inputs), C = static_cast<std::uint32_t>(scratch.form.outputs);
  const std::uint32_t here = B - first < kRowsAtOnce ? B - first : kRowsAtOnce;
  using Row = Features<T, kPixels>;
  const auto features = [&](unsigned i) { return Row(data, scratch.row[i < here ? first + i : first]); };
  const Row of_row[kRowsAtOnce] = {features(0), features(1), features(2), features(3)};
  static_assert(kRowsAtOnce == 4);
  for (std::uint32_t from = 0; from < C; from += kClasses) {
    T sum[kRowsAtOnce][kClasses] = {};
    const std::uint32_t classes = C - from < kClasses ? C - from : kClasses;
    const T* W = scratch.y + std::size_t{from} * D;
    // Entries are loaded while the previous ones are used; the last ones are loaded twice.
    typename Row::Entry next[kRowsAtOnce];
    const auto load = [&](std::uint32_t j) {
      FL_UNROLL
      for (unsigned i = 0; i < kRowsAtOnce; ++i) next[i] = of_row[i].entry[j < D ? j : D - 1];
    };
    load(lane);
    for_classes<kClasses>(classes, [&](auto is_one) {
      for (std::uint32_t j = lane; j < D; j += kWarp) {
        const Shade<T, kPixels> shade(data, j);
        T x[kRowsAtOnce];
        FL_UNROLL
        for (unsigned i = 0; i < kRowsAtOnce; ++i) x[i] = shade.of(next[i]);
        load(j + kWarp);
        FL_UNROLL
        for (unsigned c = 0; c < kClasses; ++c)
          if (is_one(c)) {
            const T weight = W[c * D + j];
            FL_UNROLL
            for (unsigned i = 0; i < kRowsAtOnce; ++i) sum[i][c] = fma(x[i], weight, sum[i][c]);
          }
      }
    });
    FL_UNROLL
    for (unsigned i = 0; i < kRowsAtOnce; ++i) FL_UNROLL
    for (unsigned c = 0; c < kClasses; ++c) {
      const T z = sum_of_lanes(sum[i][c]);
      if (lane == 0 && i < here && c < classes)
        scratch.d[std::size_t{first + i} * C + from + c] = scratch.form.bias ? z + scratch.bias()[from + c] : z;
    }
  }
}

// Replaces outputs by slopes of each row's loss, with one warp.
template <class T>
__device__ void slopes_of_rows(const ClientScratch<T>& scratch, const DeviceRows<T>& data, std::uint32_t B, std::uint32_t first,
                               unsigned lane) {
  const auto C = static_cast<std::uint32_t>(scratch.form.outputs);
  const std::uint32_t end = B - first < kRowsAtOnce ? B : first + kRowsAtOnce;
  if (scratch.form.loss != NetworkForm::Loss::softmax) {
    for (std::uint32_t at = first * C + lane; at < end * C; at += kWarp) {
      const std::uint32_t r = scratch.row[at / C];
      const double z = static_cast<double>(scratch.d[at]),
                   target = data.target != nullptr ? data.target[r] : static_cast<double>(data.label[r]);
      const double of_loss = scratch.form.loss == NetworkForm::Loss::logistic  ? 1 / (1 + exp(-z)) - target
                             : scratch.form.loss == NetworkForm::Loss::squared ? 2 * (z - target) / C
                                                                               : (z - target) / C;
      scratch.d[at] = static_cast<T>(of_loss);
    }
    return;
  }
  for (std::uint32_t b = first; b < end; ++b) {
    T* z = scratch.d + std::size_t{b} * C;
    T largest = z[0];
    for (std::uint32_t c = lane; c < C; c += kWarp) largest = z[c] > largest ? z[c] : largest;
    largest = largest_of_lanes(largest);
    double sum = 0;
    for (std::uint32_t c = lane; c < C; c += kWarp) sum += static_cast<double>(exp(z[c] - largest));
    const T factor = static_cast<T>(1 / sum_of_lanes(sum));
    const auto right = static_cast<std::uint32_t>(data.label[scratch.row[b]]);
    for (std::uint32_t c = lane; c < C; c += kWarp) z[c] = exp(z[c] - largest) * factor - (c == right ? T(1) : T(0));
  }
}

// Takes the step of a parameter whose slopes by the rows of the minibatch add up to `sum`.
template <class T>
struct TakeStep {
  const ClientScratch<T>& scratch;
  const DescentStep<T>& step;
  const Regulariser& regulariser;
  T share;  // 1 / rows
  T* v;
  __device__ __forceinline__ void operator()(std::size_t at, T sum) const {
    T g = sum * share;
    T& y = scratch.y[at];
    if (regulariser.l2 != 0 || regulariser.nonconvex != 0) g += static_cast<T>(regulariser.derivative(static_cast<double>(y)));
    y = step.taken(at, g, y, v == nullptr ? nullptr : v + at);
  }
};

// Adds up the slopes of `classes` outputs from `from` on by a thread's features (first, first + kThreads, ...) and takes their steps.
template <class T, unsigned kClasses, bool kPixels>
__device__ __forceinline__ void move_features(const ClientScratch<T>& scratch, const DeviceRows<T>& data, std::uint32_t B,
                                              std::uint32_t from, std::uint32_t classes, std::uint32_t first, const TakeStep<T>& take) {
  constexpr unsigned kOwn = kFeaturesAtOnce<T>;
  const auto D = static_cast<std::uint32_t>(scratch.form.inputs), C = static_cast<std::uint32_t>(scratch.form.outputs);
  using Row = Features<T, kPixels>;
  const auto feature = [&](unsigned i) { return first + i * kThreads; };
  const auto some = [&](unsigned i) { return feature(i) < D ? feature(i) : first; };
  Shade<T, kPixels> shade[kOwn];
  FL_UNROLL
  for (unsigned i = 0; i < kOwn; ++i) shade[i] = Shade<T, kPixels>(data, some(i));
  T g[kOwn][kClasses] = {};
  typename Row::Entry next[kOwn];
  const auto load = [&](std::uint32_t b) {
    const Row row(data, scratch.row[b < B ? b : B - 1]);
    FL_UNROLL
    for (unsigned i = 0; i < kOwn; ++i) next[i] = row.entry[some(i)];
  };
  if (B > 0) load(0);
  for_classes<kClasses>(classes, [&](auto is_one) {
    for (std::uint32_t b = 0; b < B; ++b) {
      T x[kOwn];
      FL_UNROLL
      for (unsigned i = 0; i < kOwn; ++i) x[i] = shade[i].of(next[i]);
      load(b + 1);
      const T* d = scratch.d + std::size_t{b} * C + from;
      FL_UNROLL
      for (unsigned c = 0; c < kClasses; ++c)
        if (is_one(c)) {
          const T slope = d[c];
          FL_UNROLL
          for (unsigned i = 0; i < kOwn; ++i) g[i][c] = fma(slope, x[i], g[i][c]);
        }
    }
  });
  FL_NO_UNROLL
  for (unsigned own = 0; own < kOwn && feature(own) < D; ++own) {
    T found[kClasses] = {};
    FL_UNROLL
    for (unsigned i = 0; i < kOwn; ++i) FL_UNROLL
    for (unsigned c = 0; c < kClasses; ++c)
      if (i == own) found[c] = g[i][c];
    FL_UNROLL
    for (unsigned c = 0; c < kClasses; ++c)
      if (c < classes) take(std::size_t{from + c} * D + feature(own), found[c]);
  }
}

// Takes one step of the parameters. The slopes of all rows are added up before the sum is divided by their number, as on the CPU. A thread
// handles the columns of some features, kThreads apart.
template <class T, unsigned kClasses, bool kPixels>
__device__ void move(const ClientScratch<T>& scratch, const DeviceRows<T>& data, std::uint32_t B, const DescentStep<T>& step,
                     const Regulariser& regulariser, T* v) {
  const auto D = static_cast<std::uint32_t>(scratch.form.inputs), C = static_cast<std::uint32_t>(scratch.form.outputs);
  const TakeStep<T> take{scratch, step, regulariser, B > 0 ? T(1) / static_cast<T>(B) : T(0), v};
  for (std::uint32_t from = 0; from < C; from += kClasses) {
    const std::uint32_t classes = C - from < kClasses ? C - from : kClasses;
    for (std::uint32_t first = threadIdx.x; first < D; first += kFeaturesAtOnce<T> * kThreads)
      move_features<T, kClasses, kPixels>(scratch, data, B, from, classes, first, take);
  }
  if (!scratch.form.bias) return;
  for (std::uint32_t c = threadIdx.x; c < C; c += kThreads) {
    T g = T(0);
    for (std::uint32_t b = 0; b < B; ++b) g += scratch.d[std::size_t{b} * C + c];
    take(std::size_t{C} * D + c, g);
  }
}

// Block k computes client k. y: [clients,P]
template <class T, unsigned kClasses, bool kPixels>
__global__ void __launch_bounds__(kThreads, sizeof(T) == sizeof(float) ? 2 : 1)
    descend(RegressionForm form, DeviceRows<T> data, RegressionBatches batches, std::size_t most_rows, std::size_t clients,
            DescentStep<T> step, Regulariser regulariser, T* v, T* y) {
  FL_SHARED_MEMORY(T, memory);
  const std::size_t P = form.size();
  const ClientScratch<T> scratch{form, memory, memory + P, reinterpret_cast<std::uint32_t*>(memory + P + most_rows * form.outputs)};
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (std::size_t k = blockIdx.x; k < clients; k += gridDim.x) {
    for (std::size_t j = threadIdx.x; j < P; j += kThreads) scratch.y[j] = step.w[j];
    // A thread loads one row number of each minibatch, one step ahead.
    std::uint32_t next_rows = 0, next_row = 0;
    const auto load = [&](std::uint32_t t) {
      if (t >= batches.count[k]) return;
      const std::uint64_t begin = batches.begin[t * batches.stride + k];
      next_rows = static_cast<std::uint32_t>(batches.begin[t * batches.stride + k + 1] - begin);
      if (threadIdx.x < next_rows) next_row = batches.rows[begin + threadIdx.x];
    };
    load(0);
    for (std::uint32_t t = 0; t < batches.count[k]; ++t) {
      const std::uint32_t B = next_rows;
      if (threadIdx.x < B) scratch.row[threadIdx.x] = next_row;
      __syncthreads();
      load(t + 1);
      for (std::uint32_t first = warp * kRowsAtOnce; first < B; first += kWarps * kRowsAtOnce) {
        outputs_of_rows<T, kClasses, kPixels>(scratch, data, B, first, lane);
        __syncwarp();
        slopes_of_rows(scratch, data, B, first, lane);
        __syncwarp();
      }
      __syncthreads();
      move<T, kClasses, kPixels>(scratch, data, B, step, regulariser, v == nullptr ? nullptr : v + k * P);
      __syncthreads();
    }
    __syncthreads();
    for (std::size_t j = threadIdx.x; j < P; j += kThreads) y[k * P + j] = scratch.y[j];
    __syncthreads();
  }
}

}  // namespace

template <class T>
std::optional<RegressionForm> as_regression(const NetworkForm& form, std::size_t most_rows) {
  std::optional<RegressionForm> found;
  if (form.negatives > 0 || most_rows > kThreads) return std::nullopt;
  for (const NetworkForm::Layer& layer : form.layers) {
    const LayerForm& one = layer.form;
    if (!one.memory.writes_output) continue;
    if (one.name != "dense" || one.size("positions") != 1 || found) return std::nullopt;
    found = RegressionForm{one.size("inputs"), one.size("outputs"), one.size("bias") > 0, form.loss};
  }
  return found && shared_bytes<T>(*found, most_rows) <= kMostSharedBytes ? found : std::nullopt;
}

template <class T>
void descend_regression(const Exec& exec, const RegressionForm& form, const DeviceRows<T>& data, const RegressionBatches& batches,
                        std::size_t most_rows, std::size_t clients, const DescentStep<T>& step, const Regulariser& regulariser, T* v,
                        T* y) {
  const auto start = [&]<unsigned kClasses>() {
    Launch launch(exec, "descend_regression", clients, static_cast<int>(kThreads));
    launch.with_shared(shared_bytes<T>(form, most_rows));
    const auto with = [&](auto kernel) { launch(kernel, form, data, batches, most_rows, clients, step, regulariser, v, y); };
    if (data.pixels != nullptr)
      with(descend<T, kClasses, true>);
    else
      with(descend<T, kClasses, false>);
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
