// The rule of a server that steps along messages as they arrive, without rounds in which all clients begin at the same model. A part of
// role "asynchronous" is one file of server/asynchronous/; AsyncRounds plays it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "fl_core/config/registry.hpp"

namespace fl {

class FL_API AsyncRule {
 public:
  virtual ~AsyncRule() = default;
  // Returns whether this is a rule at all: the part "none" stands for rounds that wait.
  [[nodiscard]] virtual bool is_asynchronous() const { return true; }
  // Returns the number of messages for which the server steps once, at least 1.
  [[nodiscard]] virtual std::size_t buffer() const = 0;
  // Returns the factor of a message whose client began tau steps of the server ago: 1 for tau = 0 and above 0.
  [[nodiscard]] virtual double weight(std::uint32_t tau) const = 0;
  // Returns whether weight() is 1 for every tau.
  [[nodiscard]] virtual bool ignores_age() const = 0;
  // Returns a, if the server mixes models: x <- (1 - a weight) x + a weight y with the client's model y; the buffer is then 1. No value: it
  // steps along the weighted sum of the messages.
  [[nodiscard]] virtual std::optional<double> mixing() const { return std::nullopt; }
  // Returns whether the place of a client whose message has arrived stays free until the server has stepped.
  [[nodiscard]] virtual bool refills_at_steps() const { return false; }
};

// Registers a rule. Rules have no device and no precision.
//   FL_REGISTER_ASYNCHRONOUS(FedBuff, FedBuffOptions, "fedbuff", "summary", "source");
#define FL_REGISTER_ASYNCHRONOUS(Class, OptionsStruct, name, summary, source)                                    \
  static const bool FL_JOIN(asynchronous_, __COUNTER__) = [] {                                                   \
    auto& registry = ::fl::Registry::instance();                                                                 \
    registry.describe({"asynchronous", name, summary, source}, ::fl::Options::of<OptionsStruct>());              \
    registry.add("asynchronous", name, ::fl::Device::cpu, ::fl::Precision::float64,                              \
                 ::fl::Factory<::fl::AsyncRule>([](const ::fl::Options& o) -> std::unique_ptr<::fl::AsyncRule> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                        \
                 }));                                                                                            \
    return true;                                                                                                 \
  }()

}  // namespace fl
