// The links between the clients and the server. A part of role "network" is one file of timing/networks/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/config/registry.hpp"
#include "timing/client_facts.hpp"
#include "timing/round_timeline.hpp"

namespace fl {

class FL_API Network {
 public:
  virtual ~Network() = default;
  // Prepares for the clients. Called once, before all other functions. Throws ConfigError if the options cannot be satisfied.
  virtual void open(const ClientFacts& clients) { (void)clients; }
  // Returns a client's link at a time, and the next time at which it changes; infinite: never.
  [[nodiscard]] virtual LinkRates link(std::uint32_t client, double now_s) const = 0;
  [[nodiscard]] virtual double next_change(std::uint32_t client, double now_s) const {
    (void)client, (void)now_s;
    return std::numeric_limits<double>::infinity();
  }
  // Returns the names of the kinds of links, and the number of a client's kind.
  [[nodiscard]] virtual std::vector<std::string> tiers() const { return {"all"}; }
  [[nodiscard]] virtual std::size_t tier(std::uint32_t client) const {
    (void)client;
    return 0;
  }
};

// Registers a network. Networks have no device and no precision.
//   FL_REGISTER_NETWORK(ConstantNetwork, ConstantOptions, "constant", "summary", "source");
#define FL_REGISTER_NETWORK(Class, OptionsStruct, name, summary, source)                                     \
  static const bool FL_JOIN(network_, __COUNTER__) = [] {                                                    \
    auto& registry = ::fl::Registry::instance();                                                             \
    registry.describe({"network", name, summary, source}, ::fl::Options::of<OptionsStruct>());               \
    registry.add("network", name, ::fl::Device::cpu, ::fl::Precision::float64,                               \
                 ::fl::Factory<::fl::Network>([](const ::fl::Options& o) -> std::unique_ptr<::fl::Network> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                    \
                 }));                                                                                        \
    return true;                                                                                             \
  }()

}  // namespace fl
