#include <math.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "clients/cuda/batched_gemm.cuh"
#include "clients/cuda/dense_training.hpp"
#include "fl_core/buffer.hpp"
#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/memory.hpp"
#include "fl_core/cuda/plan.cuh"

namespace fl::cuda {
namespace {

using Activation = DenseNetwork::Activation;

constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;             // the place of a row that a client does not have
constexpr std::size_t kMostRows = 512;                    // of a client in one piece; longer minibatches are added up
constexpr std::size_t kMostSparseFeatures = 4096;         // sparse rows become dense ones when they are gathered
constexpr std::size_t kWaveBytes = std::size_t{2} << 30;  // of activations and weights

// ---- data ---------------------------------------------------------------------------------------------------------------------

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
    ::fl::copy_bytes(there.data(), Device::cuda, here.data(), Device::cpu, here.size_bytes(), nullptr);
    return there.data();
  }
  DeviceRows<T> rows_;
  Buffer<T> dense_, scale_, shift_, value_;
  Buffer<std::uint8_t> pixels_;
  Buffer<std::uint64_t> row_begin_;
  Buffer<std::uint32_t> column_;
  Buffer<std::int32_t> label_;
};

// out [places,D] = the features of row[place]; zeros where there is none. A warp per place.
template <class T>
__global__ void gather_features(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, T* out) {
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

// ---- layers -------------------------------------------------------------------------------------------------------------------

// z [K,B,n] = activation(z + b_k), b_k at `bias` of client k's weights (null: none).
template <class T>
__global__ void add_bias(std::size_t places, std::size_t B, std::size_t n, const T* bias, std::size_t stride, Activation activation, T* z) {
  for (std::size_t i = thread_index(); i < places * n; i += num_threads()) {
    const T x = z[i] + (bias == nullptr ? T(0) : bias[i / (B * n) * stride + i % n]);
    z[i] = activation == Activation::relu ? (x > T(0) ? x : T(0)) : activation == Activation::tanh ? tanh(x) : x;
  }
}

// d [entries] times the activation's derivative, from its values y.
template <class T>
__global__ void through_activation(std::size_t entries, Activation activation, const T* y, T* d) {
  for (std::size_t i = thread_index(); i < entries; i += num_threads())
    d[i] *= activation == Activation::relu ? (y[i] > T(0) ? T(1) : T(0)) : T(1) - y[i] * y[i];
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

// z [K,B,C] becomes scale_k times the derivative of the rows' losses; 0 where there is no row. A warp per place.
template <class T>
__global__ void softmax_slopes(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, std::size_t C,
                               const double* scale, T* z) {
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t place = thread_index() / kWarp; place < places; place += num_threads() / kWarp) {
    T* x = z + place * C;
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      for (std::size_t c = lane; c < C; c += kWarp) x[c] = T(0);
      continue;
    }
    T largest = x[0];
    for (std::size_t c = lane; c < C; c += kWarp) largest = x[c] > largest ? x[c] : largest;
    largest = warp_largest(largest);
    double sum = 0;
    for (std::size_t c = lane; c < C; c += kWarp) sum += static_cast<double>(exp(x[c] - largest));
    const double share = scale[place / B];
    const T factor = static_cast<T>(share / warp_sum(sum));
    const auto right = static_cast<std::size_t>(data.label[r]);
    for (std::size_t c = lane; c < C; c += kWarp) x[c] = exp(x[c] - largest) * factor - (c == right ? static_cast<T>(share) : T(0));
  }
}

// The same for one output and the labels -1 (class 0) and +1.
template <class T>
__global__ void logistic_slopes(DeviceRows<T> data, const std::uint32_t* row, std::size_t places, std::size_t B, const double* scale,
                                T* z) {
  for (std::size_t place = thread_index(); place < places; place += num_threads()) {
    const std::uint32_t r = row[place];
    if (r == kNoRow) {
      z[place] = T(0);
      continue;
    }
    const double margin = static_cast<double>(z[place]), target = data.label[r] == 1 ? 1.0 : 0.0;
    z[place] = static_cast<T>(scale[place / B] * (1 / (1 + exp(-margin)) - target));
  }
}

// gradient of the bias (+)= the sum over client k's places of d [K,B,n], in their order.
template <class T>
__global__ void bias_slopes(std::size_t clients, std::size_t B, std::size_t n, const T* d, bool accumulate, std::size_t stride,
                            T* gradient) {
  for (std::size_t i = thread_index(); i < clients * n; i += num_threads()) {
    const std::size_t k = i / n, u = i % n;
    T sum = accumulate ? gradient[k * stride + u] : T(0);
    for (std::size_t b = 0; b < B; ++b) sum += d[(k * B + b) * n + u];
    gradient[k * stride + u] = sum;
  }
}

// ---- steps --------------------------------------------------------------------------------------------------------------------

template <class T>
__global__ void spread(std::size_t clients, std::size_t P, const T* from, T* to) {
  for (std::size_t i = thread_index(); i < clients * P; i += num_threads()) to[i] = from[i % P];
}

// g += the regulariser's derivative at y (stride 0: the same for all).
template <class T>
__global__ void add_regulariser(std::size_t clients, std::size_t P, Regulariser regulariser, const T* y, std::size_t stride, T* g) {
  for (std::size_t i = thread_index(); i < clients * P; i += num_threads())
    g[i] += static_cast<T>(regulariser.derivative(static_cast<double>(y[i / P * stride + i % P])));
}

// One step of the clients that have one: v = beta v + g + decay y + mu (y - w), y -= gamma v.
template <class T>
struct Step {
  T gamma, decay, momentum, proximal;
  const std::uint32_t* count;  // [K] steps of each client
  std::uint32_t number;
  const T* w;  // [P]
};
template <class T>
__global__ void take_step(std::size_t clients, std::size_t P, Step<T> step, T* g, T* v, T* y) {
  for (std::size_t i = thread_index(); i < clients * P; i += num_threads()) {
    if (step.number >= step.count[i / P]) continue;
    T direction = g[i];
    if (step.decay > T(0)) direction += step.decay * y[i];
    if (step.proximal > T(0)) direction += step.proximal * (y[i] - step.w[i % P]);
    if (v != nullptr) direction = v[i] = step.momentum * v[i] + direction;
    y[i] -= step.gamma * direction;
  }
}

// What is sent: g, or per_work_k (w - y). One block per client; `refused` says whose is not finite, and becomes zeros.
template <class T>
__global__ void write_vectors(std::size_t P, const T* w, const T* from, const T* per_work, BatchView<T> out, std::uint32_t first,
                              std::uint32_t count, std::uint8_t* refused) {
  for (std::size_t k = blockIdx.x; k < count; k += gridDim.x) {
    T* to = out.row(first + k);
    bool finite = true;
    for (std::size_t j = threadIdx.x; j < P; j += blockDim.x) {
      T x = from[k * P + j];
      if (w != nullptr) x = per_work == nullptr ? w[j] - x : per_work[k] * (w[j] - x);
      finite = finite && x - x == T(0);
      to[j] = x;
    }
    __shared__ unsigned spoilt;
    if (threadIdx.x == 0) spoilt = 0;
    __syncthreads();
    if (!finite) atomicAdd(&spoilt, 1u);
    __syncthreads();
    if (spoilt > 0)
      for (std::size_t j = threadIdx.x; j < P; j += blockDim.x) to[j] = T(0);
    if (threadIdx.x == 0) refused[first + k] = spoilt > 0 ? 1 : 0;
    __syncthreads();
  }
}

// ---- a block of clients ---------------------------------------------------------------------------------------------------------

// The minibatches of a block, drawn on the host: of client k in step t the rows begin[t*K + k] .. begin[t*K + k + 1] - 1 of `rows`.
struct Minibatches {
  std::size_t K = 0;
  std::uint32_t steps = 0;           // of the client with most
  std::vector<std::uint32_t> count;  // [K] steps of each
  std::vector<std::uint32_t> rows;
  std::vector<std::size_t> begin;  // [steps*K + 1]
  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t step, std::size_t k) const {
    const std::size_t at = step * K + k;
    return std::span(rows).subspan(begin[at], begin[at + 1] - begin[at]);
  }
  [[nodiscard]] std::size_t largest(std::uint32_t step, std::size_t first, std::size_t clients) const {
    std::size_t most = 0;
    for (std::size_t k = first; k < first + clients; ++k) most = std::max(most, of(step, k).size());
    return most;
  }
};

// Where the minibatches of clients first .. first+clients-1 lie on the GPU: a step is made of pieces of up to kMostRows places of each
// client, and a place holds a row or kNoRow.
struct Piece {
  std::size_t places;        // of each client: B
  const std::uint32_t* row;  // [clients, B]
};
struct PlannedStep {
  std::vector<Piece> pieces;
  const double* scale;  // [clients] 1 / rows of the minibatch
};

template <class T>
class DenseTraining final : public DeviceTraining<T> {
 public:
  DenseTraining(const Descent& descent, const DenseNetwork& network, const Dataset<T>& data, const GradientOracle<T>& oracle)
      : descent_(descent), network_(network), data_(data), oracle_(oracle) {
    widest_ = data.num_features;
    for (const DenseNetwork::Layer& layer : network.layers) widest_ = std::max(widest_, layer.outputs);
  }

  void run(const Exec& exec, const Exec& host, const RoundContext<T>& context, const ClientBlock<T>& block,
           std::span<std::uint8_t> refused) override {
    const Minibatches batches = draw(host, context, block);
    Workspace::Frame frame(*exec.workspace);
    const T* w = upload(exec, std::span<const T>(context.reference, context.P), frame);
    const auto* count = upload(exec, std::span<const std::uint32_t>(batches.count), frame);
    auto* refused_there = frame.take<std::uint8_t>(block.K);
    const T* per_work = normalise(exec, context, block, batches, frame);
    const std::size_t wave = clients_at_once(batches);
    for (std::size_t first = 0; first < block.K; first += wave) {
      const std::size_t clients = std::min<std::size_t>(wave, block.K - first);
      Workspace::Frame inner(*exec.workspace);
      const std::vector<PlannedStep> steps = plan(exec, batches, first, clients, inner);
      const T* result = descent_.moves ? descend(exec, context, steps, clients, w, count + first, inner)
                                       : gradient(exec, steps[0], clients, {w, 0}, inner);
      Launch(exec, "write_vectors", clients)(write_vectors<T>, context.P, descent_.moves ? w : nullptr, result,
                                             per_work == nullptr ? nullptr : per_work + first, block.vectors[0],
                                             static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(clients), refused_there);
    }
    ::fl::copy_bytes(refused.data(), Device::cpu, refused_there, Device::cuda, block.K, exec.stream);
  }

  [[nodiscard]] std::size_t size_bytes() const override { return data_.size_bytes(); }

 private:
  struct Weights {
    const T* data;
    std::size_t stride;  // between clients; 0 = shared
  };

  Minibatches draw(const Exec& host, const RoundContext<T>& context, const ClientBlock<T>& block) const {
    Minibatches batches;
    batches.K = block.K;
    std::vector<std::vector<std::vector<std::uint32_t>>> drawn(block.K);  // by client and step
    for (std::uint32_t k = 0; k < block.K; ++k) {
      Workspace::Frame frame(*host.workspace);
      const std::uint32_t client = block.clients[k];
      if (descent_.moves) {
        LocalSteps<T> steps(frame, oracle_, client, context.round, descent_.work);
        for (std::uint32_t step = 0; step < steps.count(); ++step) {
          const std::span<const std::uint32_t> rows = steps.rows(step);
          drawn[k].emplace_back(rows.begin(), rows.end());
        }
      } else {
        auto* room = frame.template take<std::uint32_t>(std::max<std::size_t>(oracle_.batch(), 1));
        const std::span<const std::uint32_t> rows = oracle_.draw(client, {.round = context.round}, room);
        drawn[k].emplace_back(rows.begin(), rows.end());
      }
      batches.count.push_back(static_cast<std::uint32_t>(drawn[k].size()));
      batches.steps = std::max(batches.steps, batches.count.back());
    }
    batches.begin.push_back(0);
    for (std::uint32_t step = 0; step < batches.steps; ++step)
      for (std::uint32_t k = 0; k < block.K; ++k) {
        if (step < drawn[k].size()) batches.rows.insert(batches.rows.end(), drawn[k][step].begin(), drawn[k][step].end());
        batches.begin.push_back(batches.rows.size());
      }
    return batches;
  }

  // block.work, and 1 / work of every client on the GPU; null where vectors are not normalised.
  const T* normalise(const Exec& exec, const RoundContext<T>& context, const ClientBlock<T>& block, const Minibatches& batches,
                     Workspace::Frame& frame) const {
    std::vector<T> per_work;
    for (std::uint32_t k = 0; k < block.K; ++k) {
      block.work[k] = context.normalise && descent_.moves ? work_of(descent_, batches.count[k], context.step_size) : 1;
      per_work.push_back(static_cast<T>(1 / block.work[k]));
    }
    return context.normalise ? upload(exec, std::span<const T>(per_work), frame) : nullptr;
  }

  [[nodiscard]] std::size_t clients_at_once(const Minibatches& batches) const {
    std::size_t most = 1, units = 2 * widest_ + network_.layers.size();
    for (std::uint32_t step = 0; step < batches.steps; ++step) most = std::max(most, batches.largest(step, 0, batches.K));
    for (const DenseNetwork::Layer& layer : network_.layers) units += layer.outputs;
    const std::size_t own = 3 * oracle_.model().layers().size();  // y, g, v
    const std::size_t bytes = (std::min(most, kMostRows) * (units + data_.rows().num_features) + own) * sizeof(T);
    return std::clamp<std::size_t>(kWaveBytes / std::max<std::size_t>(bytes, 1), 1, batches.K);
  }

  // All row numbers and factors in two copies, so that steps follow each other without waiting for the host.
  std::vector<PlannedStep> plan(const Exec& exec, const Minibatches& batches, std::size_t first, std::size_t clients,
                                Workspace::Frame& frame) const {
    std::vector<std::uint32_t> row;
    std::vector<double> scale;
    for (std::uint32_t step = 0; step < batches.steps; ++step) {
      for (std::size_t k = first; k < first + clients; ++k)
        scale.push_back(1 / static_cast<double>(std::max<std::size_t>(batches.of(step, k).size(), 1)));
      const std::size_t most = batches.largest(step, first, clients);
      for (std::size_t from = 0; from < most; from += kMostRows) {
        const std::size_t B = std::min(kMostRows, most - from);
        for (std::size_t k = first; k < first + clients; ++k) {
          const std::span<const std::uint32_t> rows = batches.of(step, k);
          const std::size_t here = rows.size() > from ? std::min(B, rows.size() - from) : 0;
          row.insert(row.end(), rows.begin() + static_cast<std::ptrdiff_t>(here > 0 ? from : 0),
                     rows.begin() + static_cast<std::ptrdiff_t>(here > 0 ? from + here : 0));
          row.insert(row.end(), B - here, kNoRow);
        }
      }
    }
    const std::uint32_t* row_there = upload(exec, std::span<const std::uint32_t>(row), frame);
    const double* scale_there = upload(exec, std::span<const double>(scale), frame);
    std::vector<PlannedStep> steps;
    for (std::uint32_t step = 0; step < batches.steps; ++step) {
      PlannedStep planned{{}, scale_there + step * clients};
      const std::size_t most = batches.largest(step, first, clients);
      for (std::size_t from = 0; from < most; from += kMostRows) {
        const std::size_t B = std::min(kMostRows, most - from);
        planned.pieces.push_back({B, row_there});
        row_there += clients * B;
      }
      steps.push_back(std::move(planned));
    }
    return steps;
  }

  // y after all steps, from w: [clients,P].
  const T* descend(const Exec& exec, const RoundContext<T>& context, const std::vector<PlannedStep>& steps, std::size_t clients, const T* w,
                   const std::uint32_t* count, Workspace::Frame& frame) {
    const std::size_t P = context.P, entries = clients * P;
    T *y = frame.take<T>(entries), *v = descent_.momentum > 0 ? frame.take<T>(entries) : nullptr;
    Launch(exec, "spread", blocks_for(entries))(spread<T>, clients, P, w, y);
    if (v != nullptr) FL_CUDA_CHECK(cudaMemsetAsync(v, 0, entries * sizeof(T), stream_of(exec)));
    for (std::uint32_t step = 0; step < steps.size(); ++step) {
      Workspace::Frame inner(*exec.workspace);
      T* g = gradient(exec, steps[step], clients, {y, P}, inner);
      const Step<T> how{static_cast<T>(context.step_size),
                        static_cast<T>(descent_.weight_decay),
                        static_cast<T>(descent_.momentum),
                        static_cast<T>(descent_.proximal_mu),
                        count,
                        step,
                        w};
      Launch(exec, "take_step", blocks_for(entries))(take_step<T>, clients, P, how, g, v, y);
    }
    return y;
  }

  // Gradients of the clients' minibatches at their weights: [clients,P].
  T* gradient(const Exec& exec, const PlannedStep& step, std::size_t clients, Weights y, Workspace::Frame& frame) {
    const std::size_t P = oracle_.model().layers().size();
    T* g = frame.take<T>(clients * P);
    if (step.pieces.empty()) FL_CUDA_CHECK(cudaMemsetAsync(g, 0, clients * P * sizeof(T), stream_of(exec)));
    for (std::size_t i = 0; i < step.pieces.size(); ++i) {
      Workspace::Frame piece(*exec.workspace);
      add_piece(exec, step.pieces[i].row, clients, step.pieces[i].places, step.scale, y, i > 0, g, P, piece);
    }
    const Regulariser& regulariser = oracle_.model().regulariser();
    if (regulariser.l2 != 0 || regulariser.nonconvex != 0)
      Launch(exec, "add_regulariser", blocks_for(clients * P))(add_regulariser<T>, clients, P, regulariser, y.data, y.stride, g);
    return g;
  }

  // Forward and backward of up to kMostRows rows of each client; g (+)= their part of the gradient.
  void add_piece(const Exec& exec, const std::uint32_t* row, std::size_t clients, std::size_t B, const double* scale, Weights y,
                 bool accumulate, T* g, std::size_t P, Workspace::Frame& frame) {
    const std::size_t places = clients * B;
    std::vector<T*> activation{frame.take<T>(places * data_.rows().num_features)};
    Launch(exec, "gather_features", blocks_for(places * kWarp))(gather_features<T>, data_.rows(), row, places, activation[0]);
    for (const DenseNetwork::Layer& layer : network_.layers) {
      T* out = frame.take<T>(places * layer.outputs);
      batched_gemm<T>(exec, clients, B, layer.outputs, layer.inputs, T(1), {activation.back(), B * layer.inputs, Transpose::no},
                      {y.data + layer.weight, y.stride, Transpose::yes}, T(0), {out, B * layer.outputs, Transpose::no});
      const T* bias = layer.bias == DenseNetwork::kNoBias ? nullptr : y.data + layer.bias;
      if (bias != nullptr || layer.activation != Activation::none)
        Launch(exec, "add_bias", blocks_for(places * layer.outputs))(add_bias<T>, places, B, layer.outputs, bias, y.stride,
                                                                     layer.activation, out);
      activation.push_back(out);
    }
    T *d = activation.back(), *other[2] = {frame.take<T>(places * widest_), frame.take<T>(places * widest_)};
    const std::size_t outputs = network_.layers.back().outputs;
    if (network_.loss == DenseNetwork::Loss::softmax)
      Launch(exec, "softmax_slopes", blocks_for(places * kWarp))(softmax_slopes<T>, data_.rows(), row, places, B, outputs, scale, d);
    else
      Launch(exec, "logistic_slopes", blocks_for(places))(logistic_slopes<T>, data_.rows(), row, places, B, scale, d);
    for (std::size_t l = network_.layers.size(); l-- > 0;) {
      const DenseNetwork::Layer& layer = network_.layers[l];
      if (layer.activation != Activation::none)
        Launch(exec, "through_activation", blocks_for(places * layer.outputs))(through_activation<T>, places * layer.outputs,
                                                                               layer.activation, activation[l + 1], d);
      batched_gemm<T>(exec, clients, layer.outputs, layer.inputs, B, T(1), {d, B * layer.outputs, Transpose::yes},
                      {activation[l], B * layer.inputs, Transpose::no}, accumulate ? T(1) : T(0), {g + layer.weight, P, Transpose::no});
      if (layer.bias != DenseNetwork::kNoBias)
        Launch(exec, "bias_slopes", blocks_for(clients * layer.outputs))(bias_slopes<T>, clients, B, layer.outputs, d, accumulate, P,
                                                                         g + layer.bias);
      if (l == 0) break;
      T* by_input = other[l % 2];
      batched_gemm<T>(exec, clients, B, layer.inputs, layer.outputs, T(1), {d, B * layer.outputs, Transpose::no},
                      {y.data + layer.weight, y.stride, Transpose::no}, T(0), {by_input, B * layer.inputs, Transpose::no});
      d = by_input;
    }
  }

  Descent descent_;
  DenseNetwork network_;
  DeviceData<T> data_;
  const GradientOracle<T>& oracle_;
  std::size_t widest_ = 0;
};

}  // namespace

template <class T>
bool can_train_on(const Dataset<T>& data) {
  if (data.num_classes < 2 || data.vocabulary > 0 || data.labels_per_row() > 1 || !data.augment.is_none()) return false;
  return !data.is_sparse || data.num_features <= kMostSparseFeatures;
}

template <class T>
std::unique_ptr<DeviceTraining<T>> make_dense_training(const Descent& descent, const DenseNetwork& network, const Dataset<T>& data,
                                                       const GradientOracle<T>& oracle) {
  return std::make_unique<DenseTraining<T>>(descent, network, data, oracle);
}

#define FL_INSTANTIATE(T)                                                                                                    \
  template bool can_train_on<T>(const Dataset<T>&);                                                                          \
  template std::unique_ptr<DeviceTraining<T>> make_dense_training<T>(const Descent&, const DenseNetwork&, const Dataset<T>&, \
                                                                     const GradientOracle<T>&);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
