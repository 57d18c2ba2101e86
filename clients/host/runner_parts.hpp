// The parts and settings of a block runner and of the classes that it consists of.
#pragma once

#include <cstdint>

#include "clients/host/message_measures.hpp"
#include "clients/learning/local_update.hpp"
#include "clients/learning/oracle.hpp"
#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/matrix_products.hpp"
#include "fl_core/round/round_times.hpp"
#include "fl_core/round/round_views.hpp"

namespace fl {

struct BlockRunnerOptions {
  std::uint32_t block = 0;   // clients per block; 0 = as many as keep the block's vectors in cache
  bool materialise = false;  // messages are encoded, and their receiver decodes the bytes
  bool counts_bits = true;   // false: the bits of messages stay 0, because their owner counts them when it needs them
  PublishedMetrics published_metrics = PublishedMetrics::none;
  Device device = Device::cpu;                     // where clients train and operators run, if they can
  Device memory = Device::managed;                 // of vectors, state and messages with a GPU; cuda: the host follows no pointer to them
  bool trains_on_cpu = false;                      // all clients train on the CPU whatever the device, with the CPU's bytes
  MatrixProducts products = MatrixProducts::full;  // values other than full need clients that train on a GPU
  ParameterKinds kinds;                            // of the model
  RoundTimes* times = nullptr;                     // filled unless null

  // Returns where vectors and messages lie, and whether the host cannot follow pointers to them.
  [[nodiscard]] Device place() const { return device == Device::cpu ? Device::cpu : memory; }
  [[nodiscard]] bool is_plain() const { return device != Device::cpu && memory == Device::cuda; }
};

// The first local vectors of clients that something else than a simulation computed. They lie on the host.
template <class T>
class GivenVectors {
 public:
  virtual ~GivenVectors() = default;
  // Returns the finite vectors [K,P] of a block. They stay as they are until the exchange has ended.
  [[nodiscard]] virtual BatchView<const T> of(const ClientBlock<T>& block) const = 0;
};

// The parts of a run that make up simulated clients. All of them outlive the runner.
template <class T>
struct BlockRunnerParts {
  const LocalUpdate<T>& local_update;
  const Feedback<T>& feedback;
  const Exchange<T>& exchange;
  const GradientOracle<T>* oracle;  // null if vectors are given
  ThreadPool& pool;
  ClientState<T>& state;         // of the clients that the runner computes
  const SharedState<T>& shared;  // the replica of the runner's process
  ClientPostprocessor<T> postprocessor{};
  const GivenVectors<T>* given = nullptr;  // these take the place of the local update's vectors; for a runner on the CPU
};

}  // namespace fl
