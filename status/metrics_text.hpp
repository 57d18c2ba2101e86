// Writes metrics in the text format of Prometheus, version 0.0.4: families with HELP and TYPE, each with its samples.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "fl_core/config/device.hpp"

namespace fl::net {

class FL_API MetricsText {
 public:
  enum class Type { counter, gauge };
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Begins a family. The samples that follow belong to it. Throws Error if the name is not one, or if the family was written already.
  void family(std::string_view name, Type type, std::string_view help);
  void sample(double value, Labels labels = {});
  void sample(std::uint64_t value, Labels labels = {});
  // Writes a family of one sample without labels.
  template <class Value>
  void single(std::string_view name, Type type, std::string_view help, Value value) {
    family(name, type, help);
    sample(value);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

  // Returns the text with a question mark for each byte that is not printable ASCII, line feeds excepted. Labels are written so; texts
  // that are equal afterwards belong to one sample.
  [[nodiscard]] static std::string plain(std::string_view text);

 private:
  void write(const std::string& value, Labels labels);

  std::string text_, family_;
};

}  // namespace fl::net
