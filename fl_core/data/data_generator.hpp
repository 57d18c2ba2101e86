// Makes a data set from numbers alone: synthetic classification, quadratics with a known optimum, worked examples of papers.
//
// Registered under the role "data" for Device::cpu in both precisions:
//   FL_REGISTER_PART(DataGenerator, Quadratics, QuadraticsOptions, (PartInfo{"data", "quadratics", "summary", "source"}));
#pragma once

#include <cstdint>

#include "fl_core/data/dataset.hpp"

namespace fl {

template <class T>
class FL_API DataGenerator {
 public:
  virtual ~DataGenerator() = default;
  // The same seed gives the same data in both precisions, up to the rounding of the values. The set comes with its natural partition
  // (client_begin). Throws ConfigError when the options cannot be met.
  [[nodiscard]] virtual Dataset<T> generate(std::uint64_t seed) const = 0;
};

}  // namespace fl
