// Weighted sums of messages on a GPU, where the messages lie already: the bytes of Aggregator's sums on the CPU.
//
//   sum_j = sum_i weight_i c_ij, in double, in the order of server/aggregator.hpp; no atomics
// Of what operators send, these have a device form: values for all positions and for lists of positions, raw or levels of every format,
// with or without excluded tensors. These do not, and the host adds them up: factors, messages with a second one behind them (`rest`),
// messages whose buffers the host holds (decoded ones, as with --materialise), and cohorts of which some send plain vectors and others
// segments. Codes are no matter: their payload holds the entries that the receiver made of them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

inline constexpr std::size_t kSumGroup = 64;  // clients that are summed one after another, on every device

template <class T>
class DeviceAggregation {
 public:
  virtual ~DeviceAggregation() = default;
  // Like Aggregator::sum. False where a message has no device form; then `sum` is as it was. Whoever wrote the messages has been waited
  // for. sum: [L] in host memory, complete on return.
  [[nodiscard]] virtual bool sum(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
                                 std::span<double> sum) = 0;
};

// Null where this build has no CUDA.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceAggregation<T>> make_device_aggregation();

extern template std::unique_ptr<DeviceAggregation<float>> make_device_aggregation();
extern template std::unique_ptr<DeviceAggregation<double>> make_device_aggregation();

}  // namespace fl
