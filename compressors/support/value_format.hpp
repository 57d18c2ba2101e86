// The number format in which an operator's raw values are transmitted; "native" is the scenario's precision.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compressors/contract.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

enum class ValueFormat { native, fp16, bf16, fp32, fp64 };

// Returns the names of the formats in scenario files, for Schema::choice.
[[nodiscard]] inline std::vector<std::pair<ValueFormat, std::string>> value_format_names() {
  return {{ValueFormat::native, "native"},
          {ValueFormat::fp16, "fp16"},
          {ValueFormat::bf16, "bf16"},
          {ValueFormat::fp32, "fp32"},
          {ValueFormat::fp64, "fp64"}};
}

template <class T>
[[nodiscard]] WireValue wire_of(ValueFormat format) {
  switch (format) {
    case ValueFormat::native: return kNativeWire<T>;
    case ValueFormat::fp16: return WireValue::fp16;
    case ValueFormat::bf16: return WireValue::bf16;
    case ValueFormat::fp32: return WireValue::fp32;
    case ValueFormat::fp64: return WireValue::fp64;
  }
  return kNativeWire<T>;
}

// Returns the largest relative error of a value in the format's normal range: half a unit in the last place, or 0 if values are not
// rounded.
template <class T>
[[nodiscard]] double relative_rounding(ValueFormat format) {
  const WireValue wire = wire_of<T>(format);
  if (wire == WireValue::fp16) return 0x1p-11;
  if (wire == WireValue::bf16) return 0x1p-8;
  return wire == WireValue::fp32 && sizeof(T) == sizeof(double) ? 0x1p-24 : 0.0;
}

// Returns the domain in which that bound holds, for entries that are multiplied by a factor of at least 1 before they are sent.
template <class T>
[[nodiscard]] Domain rounding_domain(ValueFormat format, double factor = 1) {
  if (relative_rounding<T>(format) == 0) return {};
  switch (wire_of<T>(format)) {
    case WireValue::fp16: return {.sent = {0x1p-14, 65520 / factor, true}};
    case WireValue::bf16: return {.sent = {0x1p-126, 0x1p127 / factor, true}};
    default: return {.sent = {0x1p-126, 0x1.ffffffp127 / factor, true}};
  }
}

}  // namespace fl
