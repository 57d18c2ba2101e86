// A partitioner gives every row of a training set to exactly one client.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/dataset.hpp"
#include "fl_core/registry.hpp"

namespace fl {

// What a partitioner may know: no features, only labels and counts.
struct PartitionRequest {
  std::size_t num_rows = 0;
  std::size_t num_classes = 0;                 // 0 = no labels
  std::span<const std::int32_t> label;         // [num_rows] or empty
  std::span<const std::size_t> natural_begin;  // the data's own partition, or empty
  std::size_t num_clients = 0;
  std::uint64_t seed = 1;
};

class FL_API Partitioner {
 public:
  virtual ~Partitioner() = default;
  // Every row once, no client empty, the same split for the same seed. Throws ConfigError when the request cannot be met; never loops.
  [[nodiscard]] virtual std::vector<Shard> split(const PartitionRequest& request) const = 0;
};

// Partitioners have no device and no precision: registered with Device::cpu, Precision::float64.
//   FL_REGISTER_PARTITIONER(Contiguous, ContiguousOptions, "contiguous", "summary", "source");
#define FL_REGISTER_PARTITIONER(Class, OptionsStruct, name, summary, source)                                         \
  static const bool FL_JOIN(partitioner_, __LINE__) = [] {                                                           \
    auto& registry = ::fl::Registry::instance();                                                                     \
    registry.describe({"partitioner", name, summary, source}, ::fl::Options::of<OptionsStruct>());                   \
    registry.add("partitioner", name, ::fl::Device::cpu, ::fl::Precision::float64,                                   \
                 ::fl::Factory<::fl::Partitioner>([](const ::fl::Options& o) -> std::unique_ptr<::fl::Partitioner> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                            \
                 }));                                                                                                \
    return true;                                                                                                     \
  }()

}  // namespace fl
