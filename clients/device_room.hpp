// What clients that train on a GPU take of its memory, known without one.
//
//   training     (E min(B, 512) + 3 P) numbers for each client of a wave, E entries of a pass over an example, B rows of a minibatch, all
//   of
//                which count under batch normalisation; waves are of 2 GiB, and one client always fits; convolutions whose windows are laid
//                out before take up to 256 MiB more
//   evaluation   two layers' outputs for as many rows as take 512 MiB
// Bounds from above for what clients/cuda/training.cu and evaluation.cu do; their own numbers are DeviceTraining::room_bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clients/local_update.hpp"
#include "clients/model.hpp"
#include "clients/oracle.hpp"

namespace fl {

// Vectors of a block of clients on a GPU take so many bytes at the most.
inline constexpr std::size_t kDeviceBlockBytes = std::size_t{4} << 30;
// Clients that have their vectors [num_vectors,P] on a GPU at a time, of a cohort of M.
template <class T>
[[nodiscard]] constexpr std::size_t device_block(std::size_t M, std::size_t num_vectors, std::size_t P) {
  const std::size_t fits = kDeviceBlockBytes / (P * sizeof(T) * num_vectors);
  return fits < 1 ? 1 : fits < M ? fits : M;
}

// Windows of convolutions, laid out as matrices, take so many bytes at the most.
inline constexpr std::size_t kMostLaidOutBytes = std::size_t{256} << 20;
// Long sums of products are taken in parts of kSumPart terms, side by side where there are few; these take so many bytes at the most.
inline constexpr std::size_t kSumPart = 512, kMostPartialBytes = std::size_t{64} << 20;
// Both are for a number of clients, of examples of each client, and of bytes of a number.
[[nodiscard]] std::uint64_t product_bytes(const NetworkForm& form, std::size_t clients, std::size_t examples, std::size_t number);

// Of a data set on a GPU; 0 where it has no form there.
template <class T>
[[nodiscard]] std::uint64_t device_data_bytes(const Dataset<T>& data);

// 0 where clients train on the CPU, GPU or not.
template <class T>
[[nodiscard]] std::uint64_t device_training_bytes(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle, std::size_t clients);
// The same for gradients of all rows.
template <class T>
[[nodiscard]] std::uint64_t device_gradient_bytes(const Model<T>& model, std::size_t clients, std::size_t rows);
template <class T>
[[nodiscard]] std::uint64_t device_evaluation_bytes(const Model<T>& model, std::size_t rows);

}  // namespace fl
