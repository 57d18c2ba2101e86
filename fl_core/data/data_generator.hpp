// Generates a data set from its options: synthetic classification, quadratics with a known optimum, worked examples of papers.
//
// Registered under the role "data" for Device::cpu in both precisions:
//   FL_REGISTER_PART(DataGenerator, Quadratics, QuadraticsOptions, (PartInfo{"data", "quadratics", "summary", "source"}));
#pragma once

#include <cstdint>
#include <optional>

#include "fl_core/data/dataset.hpp"

namespace fl {

template <class T>
class FL_API DataGenerator {
 public:
  virtual ~DataGenerator() = default;
  // Generates the data. The same seed gives the same data in both precisions, up to rounding. The set contains its natural partition
  // (client_begin). Throws ConfigError if the options cannot be satisfied.
  [[nodiscard]] virtual Dataset<T> generate(std::uint64_t seed) const = 0;
  // Generates the test set that goes with it, or no value if there is none.
  [[nodiscard]] virtual std::optional<Dataset<T>> generate_test(std::uint64_t seed) const {
    (void)seed;
    return std::nullopt;
  }
};

}  // namespace fl
