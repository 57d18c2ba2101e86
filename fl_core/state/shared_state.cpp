#include "fl_core/state/shared_state.hpp"

#include <algorithm>

#include "fl_core/config/error.hpp"

namespace fl {

template <class T>
void SharedState<T>::declare(const SlotSpec& spec) {
  specs_.push_back(spec);
  slots_[spec.name] = Buffer<T>(length_of(spec), memory_);
}

template <class T>
std::span<T> SharedState<T>::slot(const std::string& name) {
  const auto it = slots_.find(name);
  if (it == slots_.end()) throw Error("no shared slot named '" + name + "' was declared");
  return it->second.span();
}

template <class T>
std::span<const T> SharedState<T>::slot(const std::string& name) const {
  const auto it = slots_.find(name);
  if (it == slots_.end()) throw Error("no shared slot named '" + name + "' was declared");
  return it->second.span();
}

template <class T>
void SharedState<T>::keep_model(std::span<const T> reference) {
  for (const SlotSpec& spec : specs_)
    if (spec.sync == SlotSync::last_model) std::ranges::copy(reference, slot(spec.name).begin());
}

template <class T>
void SharedState<T>::persist(Archive& archive) {
  for (auto& [name, slot] : slots_) {
    archive.section(name);
    archive.array(slot.span());
  }
}

template <class T>
std::uint64_t SharedState<T>::size_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [_, slot] : slots_) bytes += slot.size() * sizeof(T);
  return bytes;
}

template class SharedState<float>;
template class SharedState<double>;

}  // namespace fl
