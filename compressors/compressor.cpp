#include "compressors/compressor.hpp"

#include <algorithm>

namespace fl {

// Papers count 32 bits per value, for every precision of the experiment. Narrower formats count with their width.
template <class T>
double Compressor<T>::published_bits(const Payload<T>& message, const Scope&) const {
  if (message.silent) return 0;
  const bool has_levels = message.values == WireValue::levels;
  const int per_value = has_levels ? message.level_format.bits : std::min(32, bits_of(message.values));
  return static_cast<double>(message.num_sent) * per_value + 32.0 * static_cast<double>(message.scale.size() + message.excluded.size());
}

template <class T>
std::size_t Compressor<T>::message_length(int phase, const Scope& scope) const {
  return phases() == nullptr ? scope.P : phases()->length(phase, scope);
}

template <class T>
std::size_t Compressor<T>::client_state_size(const Scope&) const {
  return 0;
}

template <class T>
std::size_t Compressor<T>::cohort_state_size(const Scope& scope) const {
  return phases() == nullptr ? 0 : phases()->state_size(scope);
}

template <class T>
void Compressor<T>::init_cohort_state(std::uint64_t random_key, const Scope& scope, T* shared) const {
  if (phases() != nullptr) phases()->init_state(random_key, scope, shared);
}

template <class T>
void Compressor<T>::absorb_mean(int phase, const Scope& scope, std::span<const T> mean, T* shared, T* estimate) const {
  if (phases() != nullptr) return phases()->absorb(phase, scope, mean, shared, estimate);
  std::copy(mean.begin(), mean.end(), estimate);
}

template class Compressor<float>;
template class Compressor<double>;

}  // namespace fl
