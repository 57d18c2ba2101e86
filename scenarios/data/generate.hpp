// Data that a generator of the registry makes (fl_core/data/data_generator.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "fl_core/config/registry.hpp"
#include "fl_core/data/data_generator.hpp"
#include "scenarios/data/load.hpp"

namespace fl {

// Generates the training set, and the test set if the generator `kind` has one. Throws ConfigError if its options cannot be satisfied.
template <class T>
[[nodiscard]] LoadedData<T> generate_data(const std::string& kind, const Options& options, std::uint64_t seed) {
  const auto generator = make_part<DataGenerator<T>>("data", kind, options, Device::cpu, kPrecisionOf<T>);
  LoadedData<T> data;
  data.train = generator->generate(seed);
  data.test = generator->generate_test(seed);
  data.train_where = "synthetic";
  if (data.test) data.test_where = data.train_where;
  return data;
}

}  // namespace fl
