// The rule by which the server makes one vector of the messages of a cohort: their weighted sum, or another one.
#pragma once

#include <memory>
#include <span>

#include "fl_core/config/registry.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl {

class FL_API AggregationRule {
 public:
  virtual ~AggregationRule() = default;
  // Returns whether the result is sum_i weight_i c_i, which the server computes by itself. Only then do sums over other weights, means of
  // phases and the state of feedbacks follow from it.
  [[nodiscard]] virtual bool is_sum() const { return false; }
  // Computes the result for some of the coordinates. rows: [M,n] entries of the messages that arrived, in ascending order of their clients,
  // M >= 1; weights: [M], those of the estimate; out: [n]. Several threads call it, for other coordinates.
  virtual void combine(const Exec& exec, std::span<const double> weights, BatchView<const double> rows, std::span<double> out) const {
    (void)exec, (void)weights, (void)rows, (void)out;
  }
};

// Registers a rule. Rules have no device and no precision.
//   FL_REGISTER_AGGREGATION(Median, NoOptions, "coordinate_median", "summary", "source");
#define FL_REGISTER_AGGREGATION(Class, OptionsStruct, name, summary, source)                                                 \
  static const bool FL_JOIN(aggregation_, __COUNTER__) = [] {                                                                \
    auto& registry = ::fl::Registry::instance();                                                                             \
    registry.describe({"aggregation", name, summary, source}, ::fl::Options::of<OptionsStruct>());                           \
    registry.add("aggregation", name, ::fl::Device::cpu, ::fl::Precision::float64,                                           \
                 ::fl::Factory<::fl::AggregationRule>([](const ::fl::Options& o) -> std::unique_ptr<::fl::AggregationRule> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                                    \
                 }));                                                                                                        \
    return true;                                                                                                             \
  }()

}  // namespace fl
