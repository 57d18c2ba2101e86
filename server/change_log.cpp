#include "server/change_log.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>

#include "compressors/codec/codec.hpp"

namespace fl {

Scope whole_model(std::size_t P) {
  return {.kind = ScopeKind::model, .segments = {{.begin = 0, .end = P, .rows = P, .cols = 1}}, .excluded = {}, .P = P};
}

template <class T>
void ChangeLog<T>::note(std::uint32_t round, std::span<const T> w, T* before) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  const T* now = w.data();
  std::uint32_t* last = last_change_.data();
  Bits changed = 0;
  for (std::size_t j = 0; j < w.size(); ++j) {
    const bool differs = std::bit_cast<Bits>(now[j]) != std::bit_cast<Bits>(before[j]);
    last[j] = differs ? round : last[j];
    changed += differs ? 1 : 0;
    before[j] = now[j];
  }
  num_changed_.resize(round, 0);
  num_changed_.push_back(static_cast<std::uint32_t>(changed));
}

template <class T>
std::size_t ChangeLog<T>::count(std::uint32_t last, WireValue values, std::uint64_t most_bits) const {
  const std::uint64_t width = static_cast<std::uint64_t>(bits_of(values));
  const std::uint32_t least = *std::max_element(num_changed_.begin() + last + 1, num_changed_.end());
  if (least * width >= most_bits) return scope_.P;
  std::uint32_t count = 0;
  for (const std::uint32_t at : last_change_) count += at > last ? 1 : 0;
  return count * width >= most_bits ? scope_.P : count;
}

template <class T>
std::uint64_t ChangeLog<T>::list(std::uint32_t last, std::size_t n, WireValue values) {
  message_.clear(scope_.P);
  message_.positions = Positions::list;
  message_.values = values;
  message_.num_sent = n;
  message_.counts.resize_discard(1);
  message_.counts[0] = static_cast<std::uint32_t>(n);
  message_.index.resize_discard(n + 1);  // one more, so that the loop has no branches
  message_.value.resize_discard(n);
  std::uint32_t* index = message_.index.data();
  std::size_t at = 0;
  for (std::size_t j = 0; at < n; ++j) {
    index[at] = static_cast<std::uint32_t>(j);
    at += last_change_[j] > last ? 1 : 0;
  }
  message_.index.resize_keep(n);
  const codec::Channel<T> spoken{&message_, &scope_};
  return codec::encoded_bits<T>(std::span(&spoken, 1));
}

// Changes since one round hold those since a later one, so equal numbers are equal messages.
template <class T>
std::uint64_t ChangeLog<T>::bits(std::uint32_t last, WireValue values, std::uint64_t most_bits) {
  const std::size_t n = count(last, values, most_bits);
  if (n == scope_.P) return most_bits;
  const auto [found, is_new] = bits_of_count_.try_emplace(n, 0);
  if (is_new) found->second = std::min(most_bits, list(last, n, values));
  return found->second;
}

template <class T>
void ChangeLog<T>::require_rounds(std::size_t num_rounds) const {
  const auto refuse = [](const std::string& what) { throw ArchiveError("in 'downlink': " + what); };
  const bool is_kept = !last_change_.empty();
  if (num_changed_.size() != (is_kept ? num_rounds : 1)) refuse("the lists of its rounds differ in length");
  if (std::ranges::any_of(last_change_, [num_rounds](std::uint32_t round) { return round >= num_rounds; }))
    refuse("a parameter changed in a round that was not played");
}

template class ChangeLog<float>;
template class ChangeLog<double>;

}  // namespace fl
