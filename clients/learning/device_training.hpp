// Training of a block of clients on a GPU: all of them take a step together.
//
// The GPU holds one copy of the data, with images as bytes. Minibatches are drawn on the host, the same as for clients on the CPU, and
// gathered by a kernel. Clients with fewer steps or rows than others wait behind masks. Every run gives the same bytes. Sums are in another
// order than on the CPU: the relative difference is 1e-5 per step in float.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "clients/learning/local_update.hpp"
#include "clients/learning/optimizer_state.hpp"
#include "clients/learning/oracle.hpp"
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
  // Fills block.vectors[0] and block.work. refused [K] becomes 1 for a client whose vector held NaN or an infinity; the vector becomes
  // zeros. `kept` are the rows of the local optimizer's vectors, with row numbers on the GPU, if it keeps them between rounds. The pool's
  // threads draw the minibatches; `exec` is the GPU's. Waits for the GPU only for `refused` and for the numbers of steps that clients keep.
  virtual void run(const Exec& exec, ThreadPool& pool, const RoundView<T>& round, const ClientBlock<T>& block, const KeptStates<T>& kept,
                   std::span<std::uint8_t> refused) = 0;
  // Returns whether it supports the models at which the clients of a run begin. Otherwise they train on the CPU.
  [[nodiscard]] virtual bool can_start_at(const RunSettings& run) const = 0;
  [[nodiscard]] virtual std::size_t size_bytes() const = 0;                     // on the GPU, data included
  [[nodiscard]] virtual std::size_t room_bytes(std::size_t clients) const = 0;  // upper bound for run() on a block of `clients` clients
};

// `products` is the precision of the layers' products; a regression that fits into a block of threads multiplies in full precision. `kinds`
// is of the model in the run; without it, vectors are plain gradients or differences of all parameters. Returns null if the local update,
// its optimizer, the model or its data have no GPU form, or if this build has no CUDA: clients then train on the CPU.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceTraining<T>> make_device_training(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle,
                                                                      MatrixProducts products = MatrixProducts::full,
                                                                      const ParameterKinds& kinds = {});

extern template std::unique_ptr<DeviceTraining<float>> make_device_training(const LocalUpdate<float>&, const GradientOracle<float>&,
                                                                            MatrixProducts, const ParameterKinds&);
extern template std::unique_ptr<DeviceTraining<double>> make_device_training(const LocalUpdate<double>&, const GradientOracle<double>&,
                                                                             MatrixProducts, const ParameterKinds&);

}  // namespace fl
