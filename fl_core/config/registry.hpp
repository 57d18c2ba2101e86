// Registries map the names in a scenario file to parts.
//
// A part registers itself with one line at the end of its file; the key is (role, name, device, precision). Options and
// documentation belong to (role, name) alone, so both devices share them.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/config/options.hpp"

namespace fl {

// Description of a part for users.
struct PartInfo {
  std::string role;     // "compressor", "feedback", "model", "partitioner", "measure", ...
  std::string name;     // as written in a scenario file
  std::string summary;  // one line
  std::string source;   // authors, title, venue, year; "" = none
};

class FL_API Registry {
 public:
  static Registry& instance();

  void describe(PartInfo info, Options defaults);
  void add(const std::string& role, const std::string& name, Device device, Precision precision, std::any factory);

  [[nodiscard]] std::vector<std::string> roles() const;  // roles that have a part, sorted
  // Returns the names of a role, sorted. With a device and a precision, `contains` tells whether the part exists for both.
  [[nodiscard]] std::vector<std::string> names(const std::string& role) const;
  [[nodiscard]] bool contains(const std::string& role, const std::string& name) const;
  [[nodiscard]] bool contains(const std::string& role, const std::string& name, Device device, Precision precision) const;
  [[nodiscard]] const PartInfo& info(const std::string& role, const std::string& name) const;  // throws ConfigError with the nearest name
  [[nodiscard]] Options default_options(const std::string& role, const std::string& name) const;
  [[nodiscard]] const std::any& factory(const std::string& role, const std::string& name, Device device, Precision precision) const;

 private:
  struct Impl;
  Registry();
  ~Registry();
  std::unique_ptr<Impl> impl_;
};

// A factory makes an Interface from the part's options.
template <class Interface>
using Factory = std::function<std::unique_ptr<Interface>(const Options&)>;

// Makes the part `name`. Throws ConfigError if none exists for this device and precision.
template <class Interface>
[[nodiscard]] std::unique_ptr<Interface> make_part(const std::string& role, const std::string& name, const Options& options, Device device,
                                                   Precision precision) {
  const auto& factory = std::any_cast<const Factory<Interface>&>(Registry::instance().factory(role, name, device, precision));
  return factory(options);
}

// Registers Part<float> and Part<double> (constructed from OptionsStruct) as implementations of Interface<float/double> for the
// device of this translation unit. Usage:   FL_REGISTER_PART(Compressor, TopK, TopKOptions, (PartInfo{"compressor", ...}));
template <template <class> class Interface, template <class> class Part, class OptionsStruct>
struct Registration {
  explicit Registration(const PartInfo& info) {
    auto& registry = Registry::instance();
    registry.describe(info, Options::of<OptionsStruct>());
    registry.add(info.role, info.name, kThisDevice, Precision::float32, make<float>());
    registry.add(info.role, info.name, kThisDevice, Precision::float64, make<double>());
  }

 private:
  template <class T>
  static std::any make() {
    return Factory<Interface<T>>(
        [](const Options& options) -> std::unique_ptr<Interface<T>> { return std::make_unique<Part<T>>(options.as<OptionsStruct>()); });
  }
};
#define FL_JOIN_INNER(a, b) a##b
#define FL_JOIN(a, b) FL_JOIN_INNER(a, b)
#define FL_REGISTER_PART(Interface, Part, OptionsStruct, ...) \
  static const ::fl::Registration<Interface, Part, OptionsStruct> FL_JOIN(registration_, __COUNTER__)(__VA_ARGS__)

}  // namespace fl
