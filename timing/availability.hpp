// When clients can be reached. A part of role "availability" is one file of timing/availabilities/.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "fl_core/config/registry.hpp"
#include "timing/client_facts.hpp"

namespace fl {

class FL_API Availability {
 public:
  virtual ~Availability() = default;
  // Prepares for the clients. Called once, before all other functions. Throws ConfigError if the options cannot be satisfied.
  virtual void open(const ClientFacts& clients) { (void)clients; }
  // Returns whether a client can be reached at a time: a function of the client and the time alone.
  [[nodiscard]] virtual bool is_here(std::uint32_t client, double now_s) const = 0;
  // Returns the first time after now_s at which is_here changes; infinite: never.
  [[nodiscard]] virtual double next_change(std::uint32_t client, double now_s) const = 0;
};

// Registers an availability. It has no device and no precision.
//   FL_REGISTER_AVAILABILITY(DayAndNight, DayAndNightOptions, "day_and_night", "summary", "source");
#define FL_REGISTER_AVAILABILITY(Class, OptionsStruct, name, summary, source)                                          \
  static const bool FL_JOIN(availability_, __COUNTER__) = [] {                                                         \
    auto& registry = ::fl::Registry::instance();                                                                       \
    registry.describe({"availability", name, summary, source}, ::fl::Options::of<OptionsStruct>());                    \
    registry.add("availability", name, ::fl::Device::cpu, ::fl::Precision::float64,                                    \
                 ::fl::Factory<::fl::Availability>([](const ::fl::Options& o) -> std::unique_ptr<::fl::Availability> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                              \
                 }));                                                                                                  \
    return true;                                                                                                       \
  }()

}  // namespace fl
