// The downlink: one common reference w at which all clients compute, and its cost for each client.
//
//   identity   w = x in the operator's wire format
//   changes    the cheaper of w itself and the bit patterns of its changed coordinates, so that clients hold exactly w
//     model      w itself, every round
//   otherwise  w <- w + C(x - w): the server's residual is x - w (EF21-P; with "stc" this is STC's downlink with its own memory)
// Averaged parameters travel raw in every case and arrive exactly. The first round sends the dense initial model. A
// client that missed rounds is charged
//   changes      the cheaper of w and the coordinates that changed since its last round, by the round of each coordinate's last change
//   model        w
//   otherwise    the cheaper of all missed messages and a dense w
// Broadcast shared slots are charged in every round, whether they travel when it opens or when it closes. Derived slots and copies of the
// previous round's model are charged only to clients that missed that round (SlotSync).
//
// Changes are a message with a list of positions over the whole model, and raw values in the wire format of w. The values use the run's
// precision if that is shorter, tensors are excluded or parameters are not shared. One pass over the model finds the changes. If the
// changes of a single round are too many for a list that is shorter than w, no list is made and its exact length is not computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "compressors/exchange.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/down_message.hpp"
#include "fl_core/message/ledger.hpp"
#include "fl_core/state/shared_state.hpp"
#include "server/change_log.hpp"

namespace fl {

// The data sent to remote clients in this round, as bytes.
template <class T>
struct DownWriting {
  bool keeps_messages = false;
  std::uint32_t round = 0;
  std::span<const T> model;                       // x [P]
  MessageLevels known;                            // the receiver's knowledge of the levels of message_
  std::vector<std::uint32_t> held;                // [M] last round before this one in which each member of the cohort held w
  std::map<std::uint32_t, DownMessage> messages;  // by that round
  // Compressed differences of the last rounds, as many as are together shorter than w.
  std::deque<std::pair<std::uint32_t, std::shared_ptr<const std::vector<std::byte>>>> differences;
};

// Lengths of this round's messages in bits.
struct DownBits {
  std::uint64_t present = 0;  // for clients that held w of the previous round
  std::uint64_t dense = 0;    // of w in the run's precision
  std::uint64_t model = 0;    // of w in the operator's encoding; 0 = none sent yet
};

template <class T>
class Downlink final : public ModelWriter {
 public:
  // `channel` compresses the downlink (name "down"); it is an identity unless a difference is sent. Kept parameters are sent once,
  // with the first model that a client receives.
  Downlink(ExchangeChannel<T> channel, DownSends sends, std::size_t num_clients, std::size_t P, ParameterKinds kinds);

  // Moves w towards the server's model and charges every member of the cohort. The first call sends the initial model.
  void send(const Exec& exec, std::uint32_t round, std::span<const T> model, std::span<const std::uint32_t> cohort,
            const SharedState<T>& shared, Ledger& ledger);
  // Return the same as bytes, for remote clients. Call keep_messages() before the first round; model_for() may be called between two
  // rounds.
  void keep_messages() { writing_.keeps_messages = true; }
  [[nodiscard]] const DownMessage& model_for(std::uint32_t position) override;
  [[nodiscard]] std::uint32_t held_by(std::uint32_t position) const override { return writing_.held.at(position); }
  // Charges the bits of a vector that is broadcast to the cohort in the middle of a round (the mean of a phase).
  void charge_phase(std::size_t length, std::span<const std::uint32_t> cohort, Ledger& ledger) const;

  void persist(Archive& archive) {
    if (!archive.is_reading() && !shared_.empty() && sends_ == DownSends::model) std::ranges::copy(shared_, reference_.begin());
    archive.section("downlink");
    archive.array(reference_.span());
    archive.list(bits_until_);
    changes_.persist(archive);
    archive.array(std::span(last_round_));
    if (archive.is_reading()) require_known_rounds();
    if (writing_.keeps_messages) persist_messages(archive);
  }
  // Returns the last round in which anything was sent; 0 = none.
  [[nodiscard]] std::uint32_t last_round() const { return static_cast<std::uint32_t>(bits_until_.size() - 1); }
  // Returns w [P]. If w is the model itself, it is valid until the model changes.
  [[nodiscard]] std::span<const T> reference() const { return shared_.empty() ? reference_.span() : shared_; }

  // Returns the message of changes after round `last`, for a client that held w then: a list over change_scope(). Returns null if w is
  // cheaper.
  [[nodiscard]] const Payload<T>* changes_since(std::uint32_t last);
  [[nodiscard]] const Scope& change_scope() const { return changes_.scope(); }

 private:
  // Return the bits of the message; compress() leaves it in message_.
  std::uint64_t move_reference(const Exec& exec, std::uint32_t round, std::span<const T> model);
  std::uint64_t compress(const Exec& exec, std::uint32_t round, std::span<const T> model);
  // Copies the model's entries in the ranges to w.
  static void copy(std::span<const ParameterRange> ranges, std::span<const T> model, T* w);
  // Throws ArchiveError if clients or coordinates refer to rounds that are not in the lists.
  void require_known_rounds() const;
  void note_changes(std::uint32_t round, std::span<const T> w);
  [[nodiscard]] WireValue change_values() const;
  [[nodiscard]] std::uint64_t bits_since(std::uint32_t last);
  [[nodiscard]] DownMessage write_since(std::uint32_t last);
  [[nodiscard]] std::vector<T> sent_of(std::span<const T> w) const;
  [[nodiscard]] DownMessage write_dense_model() const;
  [[nodiscard]] DownMessage write_model();
  [[nodiscard]] std::shared_ptr<const std::vector<std::byte>> bytes_of_message(std::span<const T> model) const;
  void keep_message(std::uint32_t round, std::span<const T> model);
  void persist_messages(Archive& archive);
  void charge(std::uint32_t client, std::uint64_t message, std::uint32_t round_before, Ledger& ledger);
  // Return the bits of the shared slots that every member receives, and of those for members that missed the previous round.
  [[nodiscard]] std::uint64_t broadcast_bits(const SharedState<T>& shared) const;
  [[nodiscard]] std::uint64_t missed_bits(const SharedState<T>& shared) const;
  [[nodiscard]] std::uint64_t bits_of_slot(const SharedState<T>& shared, const SlotSpec& slot) const;

  ExchangeChannel<T> channel_;
  DownSends sends_;
  ParameterKinds kinds_;
  bool is_exact_;               // w = x, bit for bit
  std::span<const T> shared_;   // the server's model, used as w; empty: reference_ is w
  Buffer<T> reference_, next_;  // w [P]; of the last round if changes are sent
  Payload<T> message_;
  ChangeLog<T> changes_;                          // used if changes are sent
  std::vector<std::uint64_t> bits_until_;         // [rounds+1] cumulative message bits of rounds 1 .. r
  std::vector<std::uint32_t> last_round_;         // [N] last round in which the client held w; 0 = never
  std::map<std::uint32_t, std::uint64_t> since_;  // bits of this round's messages, by the last round of their receivers
  DownBits bits_;
  DownWriting<T> writing_;
};

extern template class Downlink<float>;
extern template class Downlink<double>;

}  // namespace fl
