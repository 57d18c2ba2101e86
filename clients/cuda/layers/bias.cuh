// Gradients by constant terms.
#pragma once

#include "clients/cuda/divisor.hpp"
#include "clients/cuda/layer.hpp"
#include "clients/cuda/layers/sums.cuh"
#include "fl_core/ops/cuda/check.cuh"

namespace fl::cuda {

// Computes the gradient [n]: the sums of each client's d [B,outer,n,inner] over examples, outer and inner, in that order. One warp computes
// a sum: each lane adds every 32nd number, and a tree joins the lanes.
template <class T>
__global__ void sum_slopes(std::size_t clients, std::uint32_t n, std::uint32_t terms, Divisor inner, std::size_t per_client, const T* d,
                           GradientStore<T> by_bias) {
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t i = thread_index() / kWarp; i < clients * n; i += num_threads() / kWarp) {
    const std::size_t k = i / n;
    const auto u = static_cast<std::uint32_t>(i - k * n);
    double sum = 0;
    for (std::uint32_t term = lane; term < terms; term += kWarp) {
      std::uint32_t group = term;
      const std::uint32_t within = inner.split(group);
      sum += static_cast<double>(d[k * per_client + (std::size_t{group} * n + u) * inner.divisor + within]);
    }
    for (unsigned width = kWarp / 2; width > 0; width /= 2) sum += __shfl_xor_sync(kAllLanes, sum, static_cast<int>(width));
    if (lane == 0) by_bias(k, u, static_cast<T>(sum));
  }
}

// Computes the same with a block of threads per sum, for long sums: each thread adds every 256th number, a tree joins the lanes of each
// warp, and then the warps are added in order.
template <class T>
__global__ void sum_long_slopes(std::size_t clients, std::uint32_t n, std::uint32_t terms, Divisor inner, std::size_t per_client,
                                const T* d, GradientStore<T> by_bias) {
  __shared__ double room[kWarp];
  for (std::size_t i = blockIdx.x; i < clients * n; i += gridDim.x) {
    const std::size_t k = i / n;
    const auto u = static_cast<std::uint32_t>(i - k * n);
    double sum = 0;
    for (std::uint32_t term = threadIdx.x; term < terms; term += blockDim.x) {
      std::uint32_t group = term;
      const std::uint32_t within = inner.split(group);
      sum += static_cast<double>(d[k * per_client + (std::size_t{group} * n + u) * inner.divisor + within]);
    }
    sum = block_sum(sum, room);
    if (threadIdx.x == 0) by_bias(k, u, static_cast<T>(sum));
  }
}

// Computes the same if inner is 1: neighbours in memory are neighbours in n, so a block computes kWarp sums. Each of its warps adds every
// 8th term, and then the warps are added in order.
template <class T>
__global__ void sum_columns(std::size_t clients, std::uint32_t n, std::uint32_t terms, const T* d, GradientStore<T> by_bias) {
  constexpr unsigned kWarps = kBlockThreads / kWarp, kAhead = 8;  // terms loaded ahead at a time
  __shared__ double part[kWarps][kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::uint32_t pieces = (n + kWarp - 1) / kWarp;
  for (std::size_t piece = blockIdx.x; piece < clients * pieces; piece += gridDim.x) {
    const std::size_t k = piece / pieces;
    const auto u = static_cast<std::uint32_t>(piece - k * pieces) * kWarp + lane;
    double sum = 0;
    for (std::uint32_t first = warp; first < terms; first += kWarps * kAhead) {
      T next[kAhead];
      FL_UNROLL
      for (unsigned i = 0; i < kAhead; ++i) {
        const std::uint32_t term = first + i * kWarps;
        next[i] = u < n && term < terms ? d[(k * terms + term) * n + u] : T(0);
      }
      FL_UNROLL
      for (unsigned i = 0; i < kAhead; ++i) sum += static_cast<double>(next[i]);
    }
    part[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && u < n) {
      double all = 0;
      for (unsigned other = 0; other < kWarps; ++other) all += part[other][lane];
      by_bias(k, u, static_cast<T>(all));
    }
    __syncthreads();
  }
}

template <class T>
void bias_slopes(const LayerPass& pass, std::size_t n, std::size_t outer, std::size_t inner, const T* d, const GradientStore<T>& by_bias) {
  constexpr std::size_t kLong = 16;  // terms of an example; depends on the layer's shape alone, so the size of a minibatch changes no order
                                     // of summation
  const std::size_t terms = pass.B * outer * inner;
  if (inner == 1) {
    Launch(pass.exec, "bias_slopes", pass.clients * ((n + kWarp - 1) / kWarp))(sum_columns<T>, pass.clients, static_cast<std::uint32_t>(n),
                                                                               static_cast<std::uint32_t>(terms), d, by_bias);
    return;
  }
  if (outer * inner >= kLong) {
    Launch(pass.exec, "long_bias_slopes", pass.clients * n)(sum_long_slopes<T>, pass.clients, static_cast<std::uint32_t>(n),
                                                            static_cast<std::uint32_t>(terms), Divisor(inner), terms * n, d, by_bias);
    return;
  }
  Launch(pass.exec, "bias_slopes", blocks_for(pass.clients * n * kWarp))(
      sum_slopes<T>, pass.clients, static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(terms), Divisor(inner), terms * n, d, by_bias);
}

}  // namespace fl::cuda
