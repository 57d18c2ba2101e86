// Counts, on the GPU where messages lie, all that their lengths depend on. The host then knows the exact bits without reading the messages.
//
//   levels      number of occurrences of each level, in formats of up to kMostDirect levels
//   positions   bits of each code of positions.hpp for each segment, from integer sums over gaps
//   magnitudes  the largest of a message's values, scales and excluded values, which show whether it is finite (finite.hpp)
// All counts are integers or exact, so they equal the host's. Some messages are not counted and are read by the host instead: levels of
// larger formats, messages with a second message behind them, messages in host memory, and messages that contradict their scope or are out
// of order, for which the host reports the error. Raw values have no other counts.
#pragma once

#include <memory>
#include <span>

#include "compressors/codec/codec.hpp"

namespace fl::codec {

template <class T>
class DeviceTally {
 public:
  virtual ~DeviceTally() = default;
  // Fills the tally of every message, and leaves it empty for messages that are not counted. The kernels that wrote the messages must have
  // finished. Tallies point into memory of this object and are valid until the next call.
  virtual void count(std::span<Channel<T>> messages) = 0;
};

// Returns null if this build has no CUDA.
template <class T>
[[nodiscard]] std::unique_ptr<DeviceTally<T>> make_device_tally();

extern template std::unique_ptr<DeviceTally<float>> make_device_tally();
extern template std::unique_ptr<DeviceTally<double>> make_device_tally();

}  // namespace fl::codec
