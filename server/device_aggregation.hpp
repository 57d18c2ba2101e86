// Weighted sums of messages on the GPU that holds them. The bytes equal Aggregator's sums on the CPU.
//
//   sum_j = sum_i weight_i c_ij, in double, in the order of server/sum_tree.hpp; no atomics
// The following messages have a device form: values for all positions and for lists of positions, raw or as levels of every format, with
// or without excluded tensors. The host sums all others: factors, messages with a second message attached (`rest`), messages with host
// buffers (decoded ones, as with --materialise), and cohorts in which some clients send plain vectors and others segments. Codes need no
// special case: their payload holds the reconstructed entries.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "server/sum_tree.hpp"

namespace fl {

template <class T>
class DeviceAggregation {
 public:
  virtual ~DeviceAggregation() = default;
  // Computes the same as Aggregator::sum. Returns false if a message has no device form; `sum` is then unchanged. The caller must have
  // waited for the writers of the messages. sum: [L] in host memory, complete on return.
  [[nodiscard]] virtual bool sum(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
                                 std::span<double> sum) = 0;
};

// Returns null in a build without CUDA.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceAggregation<T>> make_device_aggregation();

extern template std::unique_ptr<DeviceAggregation<float>> make_device_aggregation();
extern template std::unique_ptr<DeviceAggregation<double>> make_device_aggregation();

}  // namespace fl
