// Which coordinates of w changed, and when: each coordinate's last change is kept, so that what changed since any round can be listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

// The one segment of a message over the whole model.
[[nodiscard]] Scope whole_model(std::size_t P);

template <class T>
class ChangeLog {
 public:
  // `is_kept` says whether changes are noted; without, the log stays empty.
  ChangeLog(std::size_t P, bool is_kept) : scope_(whole_model(P)), num_changed_(1, 0), last_change_(is_kept ? P : 0, 0) {}

  // Moves `before` [P] to `now` and notes what differs. Bit patterns decide: -0.0 is not 0.0, and NaN is itself.
  void note(std::uint32_t round, std::span<const T> now, T* before);
  // Returns how many coordinates changed after round `last`; P where `most_bits` are surely fewer than those of their values.
  [[nodiscard]] std::size_t count(std::uint32_t last, WireValue values, std::uint64_t most_bits) const;
  // Lists the n coordinates that changed after round `last`, without their values, and returns the message's bits.
  std::uint64_t list(std::uint32_t last, std::size_t n, WireValue values);
  // Returns the bits of that message, or `most_bits` where these are fewer.
  [[nodiscard]] std::uint64_t bits(std::uint32_t last, WireValue values, std::uint64_t most_bits);
  // Forgets what bits() has found. Call after note(), and before the first bits() of a round.
  void forget_bits() { bits_of_count_.clear(); }
  // The message that list() has made; its values are the caller's.
  [[nodiscard]] Payload<T>& message() { return message_; }
  [[nodiscard]] const Scope& scope() const { return scope_; }

  void persist(Archive& archive) {
    archive.list(num_changed_);
    archive.array(std::span(last_change_));
  }
  // Throws ArchiveError where the lists speak of other rounds than 0 .. num_rounds - 1.
  void require_rounds(std::size_t num_rounds) const;

 private:
  Scope scope_;
  Payload<T> message_;
  std::vector<std::uint32_t> num_changed_;              // [rounds+1] coordinates that changed in each round
  std::vector<std::uint32_t> last_change_;              // [P] round of each coordinate's last change; 0 = never
  std::map<std::size_t, std::uint64_t> bits_of_count_;  // of messages, by the number of coordinates that changed
};

extern template class ChangeLog<float>;
extern template class ChangeLog<double>;

}  // namespace fl
