// A partitioner gives every row of a training set to exactly one client.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "fl_core/config/registry.hpp"
#include "fl_core/data/dataset.hpp"

namespace fl {

// What a partitioner may know: no features, only labels, groups and counts.
struct PartitionRequest {
  std::size_t num_rows = 0;
  std::size_t num_classes = 0;                 // 0 = no labels
  std::span<const std::int32_t> label;         // [num_rows] or empty
  std::span<const std::size_t> natural_begin;  // the data's own partition, or empty
  std::size_t num_clients = 0;
  std::uint64_t seed = 1;
  std::span<const std::uint32_t> group = {};  // [num_rows] the number of each row's group, or empty
  std::uint64_t data_hash = 0;                // of the rows' labels and targets; 0 = not known
};

// How a client sees its rows where that is not as the data have them; the test set stays as it is.
struct FeatureShift {
  double noise_variance = 0;   // of Gaussian noise on every feature, as the model reads it; drawn once per row
  unsigned quarter_turns = 0;  // counter-clockwise, of images
};

class FL_API Partitioner {
 public:
  // Where the file that a scenario names lies.
  using FindFile = std::function<std::string(const std::string&)>;

  virtual ~Partitioner() = default;
  // Once, before anything else: for those that read a file.
  virtual void open(const FindFile& find) { (void)find; }
  // Every row once (a file may leave rows out), no client empty, the same split for the same seed. Throws ConfigError when the request
  // cannot be met; never loops.
  [[nodiscard]] virtual std::vector<Shard> split(const PartitionRequest& request) const = 0;
  // Whether splits follow from the seed of a request; false for a partitioner that draws nothing, which gives every seed the same split.
  [[nodiscard]] virtual bool draws() const { return true; }
  // Returns what should be known of the splits of such a request beyond what was asked for, in lines of up to 80 columns; "" = nothing.
  [[nodiscard]] virtual std::string note(const PartitionRequest& request) const {
    (void)request;
    return "";
  }
  // [num_clients] how each client sees its rows; none = as the data have them.
  [[nodiscard]] virtual std::vector<FeatureShift> feature_shifts(std::size_t num_clients) const {
    (void)num_clients;
    return {};
  }
  // The feature, counted from 1, whose values say which group a row belongs to; 0 = the data's own groups (natural_begin).
  [[nodiscard]] virtual std::size_t group_feature() const { return 0; }
};

// Partitioners have no device and no precision: registered with Device::cpu, Precision::float64.
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
