#include "fl_core/config/registry.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "fl_core/config/meanings.hpp"

namespace fl {
namespace {

using Target = std::pair<Device, Precision>;

struct Entry {
  bool described = false;
  PartInfo info;
  Options defaults;
  std::map<Target, std::any> factories;
};

// Defaults that replace those of the part, by role and name. They may be set while others look up.
class OtherDefaults {
 public:
  void set(const std::string& role, const std::string& name, Options defaults) {
    const std::lock_guard lock(mutex_);
    defaults_[{role, name}] = std::move(defaults);
  }
  [[nodiscard]] std::optional<Options> find(const std::string& role, const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = defaults_.find({role, name});
    return found == defaults_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Options> defaults_;
};

OtherDefaults& other_defaults() {
  static OtherDefaults defaults;
  return defaults;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// "unknown compressor "topk"; did you mean "top_k"? known: identity, top_k". `other` tells of parts of that name with another role. A name
// that is like no other may be that of a part of one's own, whose plug-in was not loaded.
ConfigError unknown(const std::string& what, const std::string& name, const std::vector<std::string>& known, const std::string& other) {
  const std::string hint = other.empty() || !meant_value(name, known).empty() ? did_you_mean(name, known, Sought::value) : other;
  const std::string start = "unknown " + what + " \"" + name + "\"";
  if (!hint.empty()) return ConfigError(start + hint + " known: " + list(known));
  return ConfigError(start + (what == "role" ? ";" : "; a part of your own needs --plugin FILE.so;") + " known: " + list(known));
}

// Every role that a part may have: what scenarios and networks choose parts for.
const std::vector<std::string>& known_roles() {
  static const std::vector<std::string> roles = {"aggregation",  "asynchronous",  "availability",    "compressor", "data",
                                                 "delivery",     "devices",       "feedback",        "layer",      "local_optimizer",
                                                 "local_update", "measure",       "model",           "network",    "participation",
                                                 "partitioner",  "postprocessor", "server_optimizer"};
  return roles;
}

// Throws ConfigError for a part that nothing could ever choose.
void require_role(const std::string& role, const std::string& name) {
  if (std::ranges::find(known_roles(), role) == known_roles().end())
    throw ConfigError("part \"" + name + "\": " + unknown("role", role, known_roles(), "").what());
}

}  // namespace

struct Registry::Impl {
  mutable std::mutex mutex;  // plug-ins may be loaded while others look up; entries never move or go
  std::map<std::string, std::map<std::string, Entry>> roles;

  [[nodiscard]] const Entry* find(const std::string& role, const std::string& name) const {
    const auto r = roles.find(role);
    if (r == roles.end()) return nullptr;
    const auto e = r->second.find(name);
    return e == r->second.end() || !e->second.described ? nullptr : &e->second;
  }

  [[nodiscard]] const Entry& get(const std::string& role, const std::string& name) const {
    if (const Entry* entry = find(role, name)) return *entry;
    std::vector<std::string> known;
    const auto r = roles.find(role);
    if (r == roles.end()) {
      for (const auto& [key, _] : roles) known.push_back(key);
      throw unknown("role", role, known, "");
    }
    for (const auto& [key, _] : r->second) known.push_back(key);
    throw unknown(role, name, known, other_role(role, name));
  }

  // Returns "; did you mean kind = "ef21" (in [feedback.up])?" for a name that parts of another role alone have.
  [[nodiscard]] std::string other_role(const std::string& role, const std::string& name) const {
    for (const auto& [other, parts] : roles)
      if (other != role && find(other, name) != nullptr && !table_of_role(other).empty())
        return "; did you mean kind = \"" + name + "\" (in [" + table_of_role(other) + "])?";
    return "";
  }
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Registry& Registry::instance() {
  static Registry registry;
  return registry;
}

void Registry::describe(PartInfo info, Options defaults) {
  require_role(info.role, info.name);
  const std::lock_guard lock(impl_->mutex);
  Entry& entry = impl_->roles[info.role][info.name];
  if (entry.described) return;  // the same part, compiled for a second device
  entry.described = true;
  entry.info = std::move(info);
  entry.defaults = std::move(defaults);
}

void Registry::add(const std::string& role, const std::string& name, Device device, Precision precision, std::any factory) {
  require_role(role, name);
  const std::lock_guard lock(impl_->mutex);
  const bool is_new = impl_->roles[role][name].factories.emplace(Target{device, precision}, std::move(factory)).second;
  if (!is_new)
    throw Error("two parts register as " + role + " \"" + name + "\" for " + to_string(device) + ", " + to_string(precision) +
                "; rename one of them");
}

std::vector<std::string> Registry::roles() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> result;
  for (const auto& [role, _] : impl_->roles) result.push_back(role);
  return result;
}

std::vector<std::string> Registry::names(const std::string& role) const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> result;
  const auto r = impl_->roles.find(role);
  if (r == impl_->roles.end()) return result;
  for (const auto& [name, entry] : r->second)
    if (entry.described) result.push_back(name);
  return result;
}

bool Registry::contains(const std::string& role, const std::string& name) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->find(role, name) != nullptr;
}

bool Registry::contains(const std::string& role, const std::string& name, Device device, Precision precision) const {
  const std::lock_guard lock(impl_->mutex);
  const Entry* entry = impl_->find(role, name);
  return entry != nullptr && entry->factories.count({device, precision}) > 0;
}

const PartInfo& Registry::info(const std::string& role, const std::string& name) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->get(role, name).info;
}

Options Registry::default_options(const std::string& role, const std::string& name) const {
  if (std::optional<Options> other = other_defaults().find(role, name)) return *std::move(other);
  const std::lock_guard lock(impl_->mutex);
  return impl_->get(role, name).defaults;
}

void set_default_options(const std::string& role, const std::string& name, Options defaults) {
  static_cast<void>(Registry::instance().info(role, name));
  other_defaults().set(role, name, std::move(defaults));
}

const std::any& Registry::factory(const std::string& role, const std::string& name, Device device, Precision precision) const {
  const std::lock_guard lock(impl_->mutex);
  const Entry& entry = impl_->get(role, name);
  const auto f = entry.factories.find({device, precision});
  if (f != entry.factories.end()) return f->second;
  std::vector<std::string> there;
  for (const auto& [target, _] : entry.factories) there.push_back(std::string(to_string(target.first)) + " " + to_string(target.second));
  throw ConfigError(role + " \"" + name + "\" does not exist for " + to_string(device) + " " + to_string(precision) +
                    "; it exists for: " + list(there));
}

}  // namespace fl
