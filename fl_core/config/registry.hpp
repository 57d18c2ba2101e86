// Registries: the one place where a name in a scenario file becomes a part.
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

// What a part is, for people.
struct PartInfo {
  std::string role;     // "compressor", "feedback", "model", "partitioner", "measure", ...
  std::string name;     // as written in a scenario file
  std::string summary;  // one line
  std::string source;   // authors, title, venue, year; "" where there is none
};

class FL_API Registry {
 public:
  static Registry& instance();

  void describe(PartInfo info, Options defaults);
  void add(const std::string& role, const std::string& name, Device device, Precision precision, std::any factory);

  [[nodiscard]] std::vector<std::string> roles() const;  // those that have a part, sorted
  // Names of a role, sorted; those that exist for a device and precision when asked.
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

// Makes the part `name`. Throws ConfigError when there is none for this device and precision.
template <class Interface>
[[nodiscard]] std::unique_ptr<Interface> make_part(const std::string& role, const std::string& name, const Options& options, Device device,
                                                   Precision precision) {
  const auto& factory = std::any_cast<const Factory<Interface>&>(Registry::instance().factory(role, name, device, precision));
  return factory(options);
}

// Registers Part<float> and Part<double> (constructed from OptionsStruct) as implementations of Interface<float/double> for the
// device of this translation unit. Used as:   FL_REGISTER_PART(Compressor, TopK, TopKOptions, (PartInfo{"compressor", ...}));
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
