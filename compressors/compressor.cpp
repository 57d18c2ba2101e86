#include "compressors/compressor.hpp"

#include <algorithm>

namespace fl {

// Papers count 32 bits per value, whatever precision the experiment ran in; formats that are narrower count as they are.
template <class T>
double Compressor<T>::published_bits(const Payload<T>& message, const Scope&) const {
  if (message.silent) return 0;
  const bool has_levels = message.values == WireValue::levels;
  const int per_value = has_levels ? message.level_format.bits : std::min(32, bits_of(message.values));
  return static_cast<double>(message.num_sent) * per_value + 32.0 * static_cast<double>(message.scale.size() + message.excluded.size());
}

template <class T>
std::size_t Compressor<T>::message_length(int, const Scope& scope) const {
  return scope.P;
}

template <class T>
std::size_t Compressor<T>::client_state_size(const Scope&) const {
  return 0;
}

template <class T>
std::size_t Compressor<T>::cohort_state_size(const Scope&) const {
  return 0;
}

template <class T>
void Compressor<T>::init_cohort_state(std::uint64_t, const Scope&, T*) const {}

template <class T>
void Compressor<T>::absorb_mean(int, const Scope&, std::span<const T> mean, T*, T* estimate) const {
  std::copy(mean.begin(), mean.end(), estimate);
}

template class Compressor<float>;
template class Compressor<double>;

}  // namespace fl
