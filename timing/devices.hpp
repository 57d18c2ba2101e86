// The devices of the clients: how fast each of them computes. A part of role "devices" is one file of timing/devices/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/config/registry.hpp"
#include "fl_core/round/stated_cost.hpp"
#include "timing/client_facts.hpp"

namespace fl {

// The abilities of a device. Infinite rates need no time.
struct DeviceRates {
  double operations_per_s = std::numeric_limits<double>::infinity();  // floating-point operations
  double bytes_per_s = std::numeric_limits<double>::infinity();       // from and to memory
  double memory_bytes = std::numeric_limits<double>::infinity();

  // Returns the seconds that the work takes: the longer of its operations and its bytes.
  [[nodiscard]] double seconds(const Work& work) const {
    const double computing = work.operations / operations_per_s, moving = work.bytes / bytes_per_s;
    return computing > moving ? computing : moving;
  }
};

class FL_API Devices {
 public:
  virtual ~Devices() = default;
  // Prepares for the clients. Called once, before all other functions. Throws ConfigError if the options cannot be satisfied.
  virtual void open(const ClientFacts& clients) { (void)clients; }
  [[nodiscard]] virtual DeviceRates rates(std::uint32_t client) const = 0;
  // Returns the names of the kinds of devices, and the number of a client's kind. One without kinds has a single one.
  [[nodiscard]] virtual std::vector<std::string> tiers() const { return {"all"}; }
  [[nodiscard]] virtual std::size_t tier(std::uint32_t client) const {
    (void)client;
    return 0;
  }
};

// Registers devices. They have no device and no precision of their own.
//   FL_REGISTER_DEVICES(ConstantDevices, ConstantOptions, "constant", "summary", "source");
#define FL_REGISTER_DEVICES(Class, OptionsStruct, name, summary, source)                                     \
  static const bool FL_JOIN(devices_, __COUNTER__) = [] {                                                    \
    auto& registry = ::fl::Registry::instance();                                                             \
    registry.describe({"devices", name, summary, source}, ::fl::Options::of<OptionsStruct>());               \
    registry.add("devices", name, ::fl::Device::cpu, ::fl::Precision::float64,                               \
                 ::fl::Factory<::fl::Devices>([](const ::fl::Options& o) -> std::unique_ptr<::fl::Devices> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                    \
                 }));                                                                                        \
    return true;                                                                                             \
  }()

}  // namespace fl
