// Estimates of the GPU memory that training clients use. They need no GPU.
//
//   training     (E min(B, 512) + 3 P) numbers for each client of a wave, with E entries of a pass over an example and B rows of a
//                minibatch (the whole minibatch under batch normalisation). A wave takes up to 2 GiB, and one client always fits.
//                Convolutions that first lay out their windows take up to 256 MiB more
//   evaluation   two layers' outputs for as many rows as take 512 MiB
//
// These are upper bounds on the memory of clients/cuda/training.cu and evaluation.cu; training reports its own number as
// DeviceTraining::room_bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clients/learning/local_update.hpp"
#include "clients/learning/model.hpp"
#include "clients/learning/oracle.hpp"

namespace fl {

// Upper bound in bytes on the vectors of a block of clients on a GPU.
inline constexpr std::size_t kDeviceBlockBytes = std::size_t{4} << 30;
// Returns how many clients of a cohort of M have their vectors [num_vectors,P] on a GPU at a time.
template <class T>
[[nodiscard]] constexpr std::size_t device_block(std::size_t M, std::size_t num_vectors, std::size_t P) {
  const std::size_t fits = kDeviceBlockBytes / (P * sizeof(T) * num_vectors);
  return fits < 1 ? 1 : fits < M ? fits : M;
}

// Upper bound in bytes on the windows of convolutions that are laid out as matrices.
inline constexpr std::size_t kMostLaidOutBytes = std::size_t{256} << 20;
// Long sums of products are split into parts of kSumPart terms. The parts run in parallel if there are few; they take up to
// kMostPartialBytes.
inline constexpr std::size_t kSumPart = 512, kMostPartialBytes = std::size_t{64} << 20;
// Returns the bytes of both, for `clients` clients with `examples` examples each and numbers of `number` bytes.
[[nodiscard]] std::uint64_t product_bytes(const NetworkForm& form, std::size_t clients, std::size_t examples, std::size_t number);

// Returns the bytes of a data set on a GPU; 0 if it has no GPU form.
template <class T>
[[nodiscard]] std::uint64_t device_data_bytes(const Dataset<T>& data);

// Returns 0 if clients train on the CPU, with or without a GPU.
template <class T>
[[nodiscard]] std::uint64_t device_training_bytes(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle, std::size_t clients);
// Returns the same for gradients of all rows.
template <class T>
[[nodiscard]] std::uint64_t device_gradient_bytes(const Model<T>& model, std::size_t clients, std::size_t rows);
template <class T>
[[nodiscard]] std::uint64_t device_evaluation_bytes(const Model<T>& model, std::size_t rows);

}  // namespace fl
