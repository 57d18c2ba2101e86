// Records the round of each coordinate's last change in w, so that the changes since any round can be listed.
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

// Returns the scope of a message with the whole model as one segment.
[[nodiscard]] Scope whole_model(std::size_t P);

template <class T>
class ChangeLog {
 public:
  // `is_kept` tells whether changes are recorded; otherwise the log stays empty.
  ChangeLog(std::size_t P, bool is_kept) : scope_(whole_model(P)), num_changed_(1, 0), last_change_(is_kept ? P : 0, 0) {}

  // Sets `before` [P] to `now` and records the coordinates that differ. Bit patterns are compared: -0.0 differs from 0.0, and NaN equals
  // itself.
  void note(std::uint32_t round, std::span<const T> now, T* before);
  // Returns the number of coordinates that changed after round `last`. Returns P if `most_bits` is certainly less than the bits of their
  // values.
  [[nodiscard]] std::size_t count(std::uint32_t last, WireValue values, std::uint64_t most_bits) const;
  // Lists the n coordinates that changed after round `last`, without their values, and returns the bits of the message.
  std::uint64_t list(std::uint32_t last, std::size_t n, WireValue values);
  // Returns the bits of that message, or `most_bits` if that is less.
  [[nodiscard]] std::uint64_t bits(std::uint32_t last, WireValue values, std::uint64_t most_bits);
  // Clears the cache of bits(). Call it after note(), and before the first bits() of a round.
  void forget_bits() { bits_of_count_.clear(); }
  // Returns the message that list() made; the caller fills in its values.
  [[nodiscard]] Payload<T>& message() { return message_; }
  [[nodiscard]] const Scope& scope() const { return scope_; }

  void persist(Archive& archive) {
    archive.list(num_changed_);
    archive.array(std::span(last_change_));
  }
  // Throws ArchiveError if the lists refer to rounds outside 0 .. num_rounds - 1.
  void require_rounds(std::size_t num_rounds) const;

 private:
  Scope scope_;
  Payload<T> message_;
  std::vector<std::uint32_t> num_changed_;              // [rounds+1] number of coordinates that changed in each round
  std::vector<std::uint32_t> last_change_;              // [P] round of each coordinate's last change; 0 = never
  std::map<std::size_t, std::uint64_t> bits_of_count_;  // bits of messages, by the number of changed coordinates
};

extern template class ChangeLog<float>;
extern template class ChangeLog<double>;

}  // namespace fl
