// An operator inside another operator. An option names it (fl_core/config/part_field.hpp); it is created for the same device and must meet
// the requirements of all outer operators.
#pragma once

#include <memory>
#include <string>

#include "compressors/compressor.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/part_field.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

// Returns the part with some of its options replaced. Throws Error for an unknown option and ConfigError for a refused value.
[[nodiscard]] inline NamedPart with_settings(const std::string& name, const std::vector<std::pair<std::string, Value>>& settings) {
  NamedPart part = resolve_name("compressor", name);
  Schema schema = part.options.schema();
  for (const auto& [key, value] : settings) {
    Field* field = schema.find(key);
    if (field == nullptr) throw Error("compressor \"" + name + "\" has no option \"" + key + "\"");
    if (const auto refused = field->assign(value)) throw ConfigError(name + ": " + key + " " + *refused);
  }
  return part;
}

namespace FL_DEVICE_NS {

template <class T>
class Wrapped {
 public:
  explicit Wrapped(const NamedPart& part) : name_(part.part) {
    const NamedPart full = with_options("compressor", part);
    operator_ = make_part<Compressor<T>>("compressor", full.part, full.options, kThisDevice, kPrecisionOf<T>);
  }

  // Throws ConfigError unless the inner operator has one phase and no state, because the outer operator has one message and stores no state
  // of inner operators.
  void check(const std::string& owner, const Scope& scope) const {
    const std::string who = owner + ": '" + name_ + "' ";
    if (operator_->num_phases() > 1) throw ConfigError(who + "works in phases and cannot stand inside another operator");
    if (operator_->client_state_size(scope) > 0 || operator_->cohort_state_size(scope) > 0)
      throw ConfigError(who + "remembers earlier rounds and cannot stand inside another operator");
    if (operator_->known_levels({}, scope).positions != nullptr)
      throw ConfigError(who + "sends values without their positions and cannot stand inside another operator; use positions = \"sent\"");
    operator_->check(scope);
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Compressor<T>& operator*() const { return *operator_; }
  [[nodiscard]] Compressor<T>* operator->() const { return operator_.get(); }

 private:
  std::string name_;
  std::unique_ptr<Compressor<T>> operator_;
};

}  // namespace FL_DEVICE_NS

// Returns the context for one client of the block, with a separate random key for the inner operator.
template <class T>
[[nodiscard]] CompressContext<T> inner_context(const CompressContext<T>& context, std::size_t k, std::uint64_t salt) {
  CompressContext<T> inner = context;
  inner.clients = context.clients.subspan(k, 1);
  inner.random_key = hash64(context.random_key, salt);
  inner.remembered = {};
  inner.remember = {};
  return inner;
}

}  // namespace fl
