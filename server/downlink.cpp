#include "server/downlink.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "compressors/codec/codec.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl {

namespace {

Scope whole_model(std::size_t P) {
  return {.kind = ScopeKind::model, .segments = {{.begin = 0, .end = P, .rows = P, .cols = 1}}, .excluded = {}, .P = P};
}

// Exact length of a dense vector of L values of T, as the codec writes it.
template <class T>
std::uint64_t dense_message_bits(std::size_t L) {
  Payload<T> payload;
  payload.clear(L);
  payload.num_sent = L;
  payload.value.resize_discard(L);
  const Scope scope = whole_model(L);
  const codec::Channel<T> channel{&payload, &scope};
  return codec::encoded_bits<T>(std::span(&channel, 1));
}

}  // namespace

template <class T>
Downlink<T>::Downlink(ExchangeChannel<T> channel, DownSends sends, std::size_t num_clients, std::size_t P, bool local_statistics)
    : channel_(std::move(channel)),
      sends_(sends),
      sent_statistics_(local_statistics ? 0 : num_statistics(channel_.scope)),
      kept_statistics_(local_statistics ? num_statistics(channel_.scope) : 0),
      is_exact_(sends != DownSends::difference && channel_.compressor->contract(channel_.scope).kappa == 0.0),
      reference_(P),
      change_scope_(whole_model(P)),
      bits_until_(1, 0),
      num_changed_(1, 0),
      last_change_(sends == DownSends::changes ? P : 0, 0),
      last_round_(num_clients, 0),
      dense_bits_(dense_message_bits<T>(P - kept_statistics_)) {
  if (sends == DownSends::changes && !is_exact_) next_ = Buffer<T>(P);
}

// w of this round, and the bits of it or of its difference to the one before.
template <class T>
std::uint64_t Downlink<T>::move_reference(const Exec& exec, std::uint32_t round, std::span<const T> model) {
  if (sends_ == DownSends::difference) {
    copy_statistics(model, reference_.data());  // the operator sees no difference of them
    const std::uint64_t bits = compress(exec, round, model);
    add_scaled(message_, channel_.scope, T(1), reference_.data());
    return bits;
  }
  if (!is_exact_ || model_bits_ == 0) model_bits_ = compress(exec, round, model);
  if (is_exact_) {
    shared_ = model;
    if (sends_ == DownSends::changes) note_changes(round, model);
    return model_bits_;
  }
  Buffer<T>& w = sends_ == DownSends::changes ? next_ : reference_;
  write_dense(message_, channel_.scope, w.data());
  copy_statistics(model, w.data());
  if (sends_ == DownSends::changes) note_changes(round, w.span());
  return model_bits_;
}

template <class T>
void Downlink<T>::copy_statistics(std::span<const T> model, T* w) const {
  for (const Segment& statistic : channel_.scope.statistics)
    std::copy(model.begin() + static_cast<std::ptrdiff_t>(statistic.begin), model.begin() + static_cast<std::ptrdiff_t>(statistic.end),
              w + statistic.begin);
}

template <class T>
std::uint64_t Downlink<T>::compress(const Exec& exec, std::uint32_t round, std::span<const T> model) {
  const std::size_t P = model.size();
  const BatchView<const T> x{model.data(), nullptr, 1, P, P}, w{reference_.data(), nullptr, 1, P, P};
  Affine<T> input;
  input.add(T(1), x);
  if (sends_ == DownSends::difference) input.add(T(-1), w);
  Payload<T>* out = &message_;
  const std::uint32_t server = 0;
  Conversation<T> conversation(*channel_.compressor, channel_.scope, channel_.random_key, {});
  conversation.open(round);
  conversation.send(exec, {.clients = std::span(&server, 1), .input = input}, std::span(&out, 1));
  const codec::Channel<T> channel{&message_.on_wire(), &channel_.scope, {}, conversation.known_levels()};
  return codec::encoded_bits<T>(std::span(&channel, 1), {}, sent_statistics_);
}

template <class T>
void Downlink<T>::require_known_rounds() const {
  const auto refuse = [](const std::string& what) { throw ArchiveError("in 'downlink': " + what); };
  if (bits_until_.empty() || !std::ranges::is_sorted(bits_until_)) refuse("the bits of its rounds do not add up");
  const bool has_changes = sends_ == DownSends::changes;
  if (num_changed_.size() != (has_changes ? bits_until_.size() : 1)) refuse("the lists of its rounds differ in length");
  const std::size_t rounds = bits_until_.size();
  const auto is_beyond = [rounds](std::uint32_t round) { return round >= rounds; };
  if (std::ranges::any_of(last_round_, is_beyond)) refuse("a client was sent to in a round that was not played");
  if (std::ranges::any_of(last_change_, is_beyond)) refuse("a parameter changed in a round that was not played");
}

// Moves the kept w to this one. Bit patterns decide: -0.0 is not 0.0, and NaN is itself.
template <class T>
void Downlink<T>::note_changes(std::uint32_t round, std::span<const T> w) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  const T* now = w.data();
  T* before = reference_.data();
  std::uint32_t* last = last_change_.data();
  Bits changed = 0;
  if (kept_statistics_ > 0) copy_statistics(w, before);  // nobody is told of them
  for (std::size_t j = 0; j < w.size(); ++j) {
    const bool differs = std::bit_cast<Bits>(now[j]) != std::bit_cast<Bits>(before[j]);
    last[j] = differs ? round : last[j];
    changed += differs ? 1 : 0;
    before[j] = now[j];
  }
  num_changed_.resize(round, 0);
  num_changed_.push_back(static_cast<std::uint32_t>(changed));
}

// How many coordinates changed after round `last`; all where w is surely cheaper.
template <class T>
std::size_t Downlink<T>::count_changes(std::uint32_t last) const {
  const std::uint64_t width = static_cast<std::uint64_t>(bits_of(change_values()));
  const std::uint32_t least = *std::max_element(num_changed_.begin() + last + 1, num_changed_.end());
  if (least * width >= model_bits_) return change_scope_.P;
  std::uint32_t count = 0;
  for (const std::uint32_t at : last_change_) count += at > last ? 1 : 0;
  return count * width >= model_bits_ ? change_scope_.P : count;
}

template <class T>
WireValue Downlink<T>::change_values() const {
  const WireValue wire = has_gaps(channel_.scope) ? kNativeWire<T> : message_.values;
  return bits_of(wire) < bits_of(kNativeWire<T>) ? wire : kNativeWire<T>;
}

// Lists the n coordinates that changed after round `last`, without their values, and returns the message's bits.
template <class T>
std::uint64_t Downlink<T>::list_changes(std::uint32_t last, std::size_t n) {
  changes_.clear(change_scope_.P);
  changes_.positions = Positions::list;
  changes_.values = change_values();
  changes_.num_sent = n;
  changes_.counts.resize_discard(1);
  changes_.counts[0] = static_cast<std::uint32_t>(n);
  changes_.index.resize_discard(n + 1);  // one more, so that the loop has no branches
  changes_.value.resize_discard(n);
  std::uint32_t* index = changes_.index.data();
  std::size_t at = 0;
  for (std::size_t j = 0; at < n; ++j) {
    index[at] = static_cast<std::uint32_t>(j);
    at += last_change_[j] > last ? 1 : 0;
  }
  changes_.index.resize_keep(n);
  const codec::Channel<T> channel{&changes_, &change_scope_};
  return codec::encoded_bits<T>(std::span(&channel, 1));
}

template <class T>
const Payload<T>* Downlink<T>::changes_since(std::uint32_t last) {
  const std::size_t n = count_changes(last);
  if (n == change_scope_.P || list_changes(last, n) >= model_bits_) return nullptr;
  for (std::size_t i = 0; i < n; ++i) changes_.value[i] = reference_[changes_.index[i]];
  return &changes_;
}

// Changes since one round hold those since a later one, so equal numbers are equal messages.
template <class T>
std::uint64_t Downlink<T>::change_bits(std::uint32_t last) {
  const std::size_t n = count_changes(last);
  if (n == change_scope_.P) return model_bits_;
  const auto [found, is_new] = bits_of_count_.try_emplace(n, 0);
  if (is_new) found->second = std::min(model_bits_, list_changes(last, n));
  return found->second;
}

// What a client that held w of round `last` is sent.
template <class T>
std::uint64_t Downlink<T>::bits_since(std::uint32_t last) {
  if (last == 0)
    return (sends_ == DownSends::difference ? dense_bits_ : std::min(dense_bits_, model_bits_)) + 8 * sizeof(T) * kept_statistics_;
  switch (sends_) {
    case DownSends::changes: return change_bits(last);
    case DownSends::model: return model_bits_;
    case DownSends::difference: return std::min(bits_until_.back() - bits_until_[last], dense_bits_);
  }
  return dense_bits_;
}

template <class T>
std::uint64_t Downlink<T>::bits_of_slot(const SharedState<T>& shared, const SlotSpec& slot) const {
  const std::size_t zeros = slot.length == 0 ? num_statistics(channel_.scope) : 0;
  return (shared.length_of(slot) - zeros) * sizeof(T) * 8;
}

template <class T>
std::uint64_t Downlink<T>::broadcast_bits(const SharedState<T>& shared) const {
  std::uint64_t bits = 0;
  for (const SlotSpec& slot : shared.specs())
    if (slot.sync == SlotSync::broadcast || slot.sync == SlotSync::broadcast_at_close) bits += bits_of_slot(shared, slot);
  return bits;
}

template <class T>
std::uint64_t Downlink<T>::missed_bits(const SharedState<T>& shared) const {
  std::uint64_t bits = 0;
  for (const SlotSpec& slot : shared.specs()) {
    const bool moves_by_itself = slot.sync == SlotSync::derived || slot.sync == SlotSync::last_model;
    if (moves_by_itself && !slot.derive_alone_reads_it) bits += bits_of_slot(shared, slot);
  }
  return bits;
}

// What exceeds the message of those who missed nothing is the price of absence.
template <class T>
void Downlink<T>::charge(std::uint32_t client, std::uint64_t message, std::uint32_t round_before, Ledger& ledger) {
  const std::uint32_t last = last_round_[client];
  const std::uint64_t dense = sends_ == DownSends::difference ? dense_bits_ : std::min(dense_bits_, model_bits_);
  if (last == 0 || (last == round_before && message == dense)) return ledger.count_down(client, message, DownCause::model);
  const std::uint64_t present = last == round_before ? message : std::min(message, present_bits_);
  if (present > 0) ledger.count_down(client, present, present == dense ? DownCause::model : DownCause::changes);
  if (message > present) ledger.count_down(client, message - present, DownCause::catch_up);
}

template <class T>
void Downlink<T>::send(const Exec& exec, std::uint32_t round, std::span<const T> model, std::span<const std::uint32_t> cohort,
                       const SharedState<T>& shared, Ledger& ledger) {
  std::uint64_t bits = dense_bits_;
  const auto round_before = static_cast<std::uint32_t>(bits_until_.size() - 1);  // that was not skipped; 0 = none
  if (round_before == 0 && sends_ == DownSends::difference)
    std::copy(model.begin(), model.end(), reference_.begin());
  else
    bits = move_reference(exec, round, model);
  bits_until_.resize(round, bits_until_.back());
  bits_until_.push_back(bits_until_.back() + bits);

  const std::uint64_t broadcast = broadcast_bits(shared), missed = missed_bits(shared);
  bits_of_count_.clear();
  present_bits_ = bits_since(round_before);
  since_.clear();
  since_.emplace(round_before, present_bits_);
  for (const std::uint32_t client : cohort) {
    const auto [found, is_new] = since_.try_emplace(last_round_[client], 0);
    if (is_new) found->second = bits_since(last_round_[client]);
    charge(client, found->second, round_before, ledger);
    if (broadcast > 0) ledger.count_down(client, broadcast, DownCause::slots);
    if (missed > 0 && last_round_[client] != round_before) ledger.count_down(client, missed, DownCause::missed_slots);
    last_round_[client] = round;
  }
}

template <class T>
void Downlink<T>::charge_phase(std::size_t length, std::span<const std::uint32_t> cohort, Ledger& ledger) const {
  const std::uint64_t bits = dense_message_bits<T>(length);
  for (const std::uint32_t client : cohort) ledger.count_down(client, bits, DownCause::phase_means);
}

template class Downlink<float>;
template class Downlink<double>;

}  // namespace fl
