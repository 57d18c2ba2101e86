// A partitioner assigns each row of a training set to exactly one client.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "fl_core/config/registry.hpp"
#include "fl_core/data/dataset.hpp"

namespace fl {

// The input of a partitioner: labels, groups and counts, but no features.
struct PartitionRequest {
  std::size_t num_rows = 0;
  std::size_t num_classes = 0;                 // 0 = no labels
  std::span<const std::int32_t> label;         // [num_rows] or empty
  std::span<const std::size_t> natural_begin;  // the data's natural partition, or empty
  std::size_t num_clients = 0;
  std::uint64_t seed = 1;
  std::span<const std::uint32_t> group = {};  // [num_rows] group number of each row, or empty
  std::uint64_t data_hash = 0;                // of the rows' labels and targets; 0 = unknown
};

// A per-client transformation of the features (feature skew). The test set is not transformed.
struct FeatureShift {
  double noise_variance = 0;   // of Gaussian noise on each feature as the model reads it; drawn once per row
  unsigned quarter_turns = 0;  // counter-clockwise, of images
};

class FL_API Partitioner {
 public:
  // Returns the path of a file that a scenario names.
  using FindFile = std::function<std::string(const std::string&)>;

  virtual ~Partitioner() = default;
  // Opens the partitioner's file, if it reads one. Called once, before all other functions.
  virtual void open(const FindFile& find) { (void)find; }
  // Splits the rows. Each row appears once (a file may leave rows out), no client is empty, and the same seed gives the same split. Throws
  // ConfigError if the request cannot be satisfied; always terminates.
  [[nodiscard]] virtual std::vector<Shard> split(const PartitionRequest& request) const = 0;
  // Returns whether the seed of a request affects the split. A partitioner without random draws returns false and splits the same for all
  // seeds.
  [[nodiscard]] virtual bool draws() const { return true; }
  // Returns a note for the user about the splits of this request, in lines of up to 80 columns, or "".
  [[nodiscard]] virtual std::string note(const PartitionRequest& request) const {
    (void)request;
    return "";
  }
  // Returns the feature transformation of each client [num_clients], or an empty list if features are unchanged.
  [[nodiscard]] virtual std::vector<FeatureShift> feature_shifts(std::size_t num_clients) const {
    (void)num_clients;
    return {};
  }
  // Returns the feature, counted from 1, whose values define the groups of rows; 0 = the data's own groups (natural_begin).
  [[nodiscard]] virtual std::size_t group_feature() const { return 0; }
};

// Registers a partitioner. Partitioners have no device and no precision; they use Device::cpu and Precision::float64.
//   FL_REGISTER_PARTITIONER(Contiguous, ContiguousOptions, "contiguous", "summary", "source");
#define FL_REGISTER_PARTITIONER(Class, OptionsStruct, name, summary, source)                                         \
  static const bool FL_JOIN(partitioner_, __COUNTER__) = [] {                                                        \
    auto& registry = ::fl::Registry::instance();                                                                     \
    registry.describe({"partitioner", name, summary, source}, ::fl::Options::of<OptionsStruct>());                   \
    registry.add("partitioner", name, ::fl::Device::cpu, ::fl::Precision::float64,                                   \
                 ::fl::Factory<::fl::Partitioner>([](const ::fl::Options& o) -> std::unique_ptr<::fl::Partitioner> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                            \
                 }));                                                                                                \
    return true;                                                                                                     \
  }()

}  // namespace fl
