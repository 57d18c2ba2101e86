// Training of a block of clients on a GPU: all of them take a step together.
//
// Data lie on the GPU once, images as bytes. Minibatches are drawn on the host, the same as for clients on the CPU, and gathered by a
// kernel. Clients with fewer steps or rows than others wait behind masks. Same bytes on every run; against the CPU's, sums of another
// order: a relative error of 1e-5 a step in float.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "clients/local_update.hpp"
#include "clients/oracle.hpp"
#include "fl_core/config/device.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/matrix_products.hpp"
#include "fl_core/round/round_views.hpp"

namespace fl {

template <class T>
class DeviceTraining {
 public:
  virtual ~DeviceTraining() = default;
  // Fills block.vectors[0] and block.work. refused [K]: 1 for a client whose vector held NaN or an infinity, which becomes zeros.
  // Minibatches are drawn by the pool's threads; `exec` is the GPU's. Does not wait for the GPU, but for `refused`.
  virtual void run(const Exec& exec, ThreadPool& pool, const RoundView<T>& round, const ClientBlock<T>& block,
                   std::span<std::uint8_t> refused) = 0;
  [[nodiscard]] virtual std::size_t size_bytes() const = 0;                     // on the GPU, data included
  [[nodiscard]] virtual std::size_t room_bytes(std::size_t clients) const = 0;  // that run() may take for a block of so many clients
};

// `products` are those of the layers; a regression that fits a block of threads multiplies in full. Null where the local update, the model
// or its data have no GPU form, or this build has no CUDA: clients then train on the CPU.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceTraining<T>> make_device_training(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle,
                                                                      MatrixProducts products = MatrixProducts::full);

extern template std::unique_ptr<DeviceTraining<float>> make_device_training(const LocalUpdate<float>&, const GradientOracle<float>&,
                                                                            MatrixProducts);
extern template std::unique_ptr<DeviceTraining<double>> make_device_training(const LocalUpdate<double>&, const GradientOracle<double>&,
                                                                             MatrixProducts);

}  // namespace fl
