// "embedding" and "product".
#include <math.h>

#include "clients/cuda/layer.hpp"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {
namespace {

// Returns the row of the table that a number names, or `entries` if it names none.
template <class T>
[[nodiscard]] __device__ std::size_t entry_of(T x, std::size_t entries) {
  return x >= T(0) && x < static_cast<T>(entries) ? static_cast<std::size_t>(x) : entries;
}

// Uses a thread per entry of the output. Writes NaN for a number beyond the table; no client may send NaN.
template <class T>
__global__ void look_up(std::size_t places, std::size_t per_client, std::size_t entries, std::size_t units, LayerWeights<T> w, const T* in,
                        T* out) {
  for (std::size_t i = thread_index(); i < places * units; i += num_threads()) {
    const std::size_t place = i / units, entry = entry_of(in[place], entries);
    const T* table = w.data + place / per_client * w.stride;
    out[i] = entry < entries ? table[entry * units + (i - place * units)] : static_cast<T>(NAN);
  }
}

constexpr unsigned kOwnUnits = 4, kWarpUnits = kOwnUnits * kWarp;

// Computes the gradient [entries,units]: the slopes of the positions that name an entry, in their order within a piece of a minibatch. A
// warp handles a client, an entry and kWarpUnits units: it reads all positions of the client, 32 at a time.
template <class T>
__global__ void look_up_slopes(std::size_t clients, std::size_t per_client, std::size_t entries, std::size_t units, const T* in,
                               const T* d_out, GradientStore<T> by_weights) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::size_t pieces = (units + kWarpUnits - 1) / kWarpUnits;
  for (std::size_t i = thread_index() / kWarp; i < clients * entries * pieces; i += num_threads() / kWarp) {
    const std::size_t k = i / (entries * pieces), rest = i - k * entries * pieces, entry = rest / pieces;
    const std::size_t first = (rest - entry * pieces) * kWarpUnits + lane;
    T sum[kOwnUnits] = {};
    for (std::size_t base = 0; base < per_client; base += kWarp) {
      const std::size_t place = base + lane;
      const bool names = place < per_client && entry_of(in[k * per_client + place], entries) == entry;
      for (unsigned found = __ballot_sync(kAllLanes, names ? 1 : 0); found != 0; found &= found - 1) {
        const unsigned which = static_cast<unsigned>(__popc((found & (0u - found)) - 1));  // the lowest
        const T* d = d_out + (k * per_client + base + which) * units;
        FL_UNROLL
        for (unsigned own = 0; own < kOwnUnits; ++own) {
          const std::size_t unit = first + own * kWarp;
          if (unit < units) sum[own] += d[unit];
        }
      }
    }
    FL_UNROLL
    for (unsigned own = 0; own < kOwnUnits; ++own) {
      const std::size_t unit = first + own * kWarp;
      if (unit < units) by_weights(k, entry * units + unit, sum[own]);
    }
  }
}

template <class T>
class EmbeddingLayer final : public DeviceLayer<T> {
 public:
  explicit EmbeddingLayer(const NetworkForm::Layer& layer)
      : entries_(layer.form.size("entries")), units_(layer.form.size("units")), length_(layer.form.size("length")) {}
  void forward(const LayerPass& pass, LayerWeights<T> w, const T* in, T* out) const override {
    const std::size_t per_client = pass.B * length_, places = pass.clients * per_client;
    Launch(pass.exec, "embedding", blocks_for(places * units_))(look_up<T>, places, per_client, entries_, units_, w, in, out);
  }
  // Sets d_in to zero, because the data's numbers have no slope.
  void backward(const LayerPass& pass, LayerWeights<T>, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>& by_weights) const override {
    const std::size_t per_client = pass.B * length_, warps = pass.clients * entries_ * ((units_ + kWarpUnits - 1) / kWarpUnits);
    Launch(pass.exec, "embedding_by_weights", blocks_for(warps * kWarp))(look_up_slopes<T>, pass.clients, per_client, entries_, units_, in,
                                                                         d_out, by_weights);
    if (d_in != nullptr) FL_CUDA_CHECK(cudaMemsetAsync(d_in, 0, pass.clients * per_client * sizeof(T), stream_of(pass.exec)));
  }

 private:
  std::size_t entries_, units_, length_;
};

// Returns the product over all positions of an example's sequence except `left_out`.
template <class T>
[[nodiscard]] __device__ T product_without(const T* in, std::size_t length, std::size_t entries, std::size_t left_out) {
  T product = T(1);
  for (std::size_t t = 0; t < length; ++t)
    if (t != left_out) product *= in[t * entries];
  return product;
}
template <class T>
__global__ void multiply_positions(std::size_t examples, std::size_t length, std::size_t entries, const T* in, T* out) {
  for (std::size_t i = thread_index(); i < examples * entries; i += num_threads()) {
    const std::size_t example = i / entries;
    out[i] = product_without(in + example * length * entries + (i - example * entries), length, entries, length);
  }
}
template <class T>
__global__ void multiply_positions_back(std::size_t examples, std::size_t length, std::size_t entries, const T* in, const T* d_out,
                                        T* d_in) {
  for (std::size_t i = thread_index(); i < examples * length * entries; i += num_threads()) {
    const std::size_t place = i / entries, j = i - place * entries, example = place / length;
    d_in[i] =
        product_without(in + example * length * entries + j, length, entries, place - example * length) * d_out[example * entries + j];
  }
}

template <class T>
class ProductLayer final : public DeviceLayer<T> {
 public:
  explicit ProductLayer(const NetworkForm::Layer& layer) : length_(layer.form.size("length")), entries_(layer.form.size("entries")) {}
  void forward(const LayerPass& pass, LayerWeights<T>, const T* in, T* out) const override {
    Launch(pass.exec, "product", blocks_for(pass.examples() * entries_))(multiply_positions<T>, pass.examples(), length_, entries_, in,
                                                                         out);
  }
  void backward(const LayerPass& pass, LayerWeights<T>, const T* in, const T*, const T* d_out, T* d_in,
                const GradientStore<T>&) const override {
    if (d_in == nullptr) return;
    Launch(pass.exec, "product_back", blocks_for(pass.examples() * length_ * entries_))(multiply_positions_back<T>, pass.examples(),
                                                                                        length_, entries_, in, d_out, d_in);
  }

 private:
  std::size_t length_, entries_;
};

FL_REGISTER_CUDA_LAYER(EmbeddingLayer, "embedding");
FL_REGISTER_CUDA_LAYER(ProductLayer, "product");

}  // namespace
}  // namespace fl::cuda
