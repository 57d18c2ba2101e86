#include "server/downlink.hpp"

#include <algorithm>

#include "compressors/codec/codec.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl {

namespace {

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
Downlink<T>::Downlink(ExchangeChannel<T> channel, DownSends sends, std::size_t num_clients, std::size_t P, ParameterKinds kinds)
    : channel_(std::move(channel)),
      sends_(sends),
      kinds_(std::move(kinds)),
      is_exact_(sends != DownSends::difference && channel_.compressor->contract(channel_.scope).kappa == 0.0),
      reference_(P),
      changes_(P, sends == DownSends::changes),
      bits_until_(1, 0),
      last_round_(num_clients, 0) {
  bits_.dense = dense_message_bits<T>(P - kinds_.num_kept());
  if (sends == DownSends::changes && !is_exact_) next_ = Buffer<T>(P);
}

// w of this round, and the bits of it or of its difference to the one before.
template <class T>
std::uint64_t Downlink<T>::move_reference(const Exec& exec, std::uint32_t round, std::span<const T> model) {
  if (sends_ == DownSends::difference) {
    copy(kinds_.unshared, model, reference_.data());  // the operator sees no difference of them
    const std::uint64_t bits = compress(exec, round, model);
    add_scaled(message_, channel_.scope, T(1), reference_.data());
    return bits;
  }
  if (!is_exact_ || bits_.model == 0) bits_.model = compress(exec, round, model);
  if (is_exact_) {
    shared_ = model;
    if (sends_ == DownSends::changes) note_changes(round, model);
    return bits_.model;
  }
  Buffer<T>& w = sends_ == DownSends::changes ? next_ : reference_;
  write_dense(message_, channel_.scope, w.data());
  copy(kinds_.unshared, model, w.data());
  if (sends_ == DownSends::changes) note_changes(round, w.span());
  return bits_.model;
}

template <class T>
void Downlink<T>::copy(std::span<const ParameterRange> ranges, std::span<const T> model, T* w) {
  for (const ParameterRange& range : ranges) std::ranges::copy(model.subspan(range.begin, range.size()), w + range.begin);
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
  writing_.known = conversation.known_levels();
  const codec::Channel<T> channel{&message_.on_wire(), &channel_.scope, {}, writing_.known};
  return codec::encoded_bits<T>(std::span(&channel, 1), {}, kinds_.num_averaged());
}

template <class T>
void Downlink<T>::require_known_rounds() const {
  const auto refuse = [](const std::string& what) { throw ArchiveError("in 'downlink': " + what); };
  if (bits_until_.empty() || !std::ranges::is_sorted(bits_until_)) refuse("the bits of its rounds do not add up");
  changes_.require_rounds(bits_until_.size());
  const auto is_beyond = [rounds = bits_until_.size()](std::uint32_t round) { return round >= rounds; };
  if (std::ranges::any_of(last_round_, is_beyond)) refuse("a client was sent to in a round that was not played");
}

// Moves the kept w to this one.
template <class T>
void Downlink<T>::note_changes(std::uint32_t round, std::span<const T> w) {
  copy(kinds_.kept, w, reference_.data());  // nobody is told of them
  changes_.note(round, w, reference_.data());
}

template <class T>
WireValue Downlink<T>::change_values() const {
  const WireValue wire = has_gaps(channel_.scope) ? kNativeWire<T> : message_.values;
  return bits_of(wire) < bits_of(kNativeWire<T>) ? wire : kNativeWire<T>;
}

template <class T>
const Payload<T>* Downlink<T>::changes_since(std::uint32_t last) {
  const std::size_t n = changes_.count(last, change_values(), bits_.model);
  if (n == change_scope().P || changes_.list(last, n, change_values()) >= bits_.model) return nullptr;
  Payload<T>& message = changes_.message();
  for (std::size_t i = 0; i < n; ++i) message.value[i] = reference_[message.index[i]];
  return &message;
}

// Returns the bits of the message to a client that held w of round `last`.
template <class T>
std::uint64_t Downlink<T>::bits_since(std::uint32_t last) {
  if (last == 0)
    return (sends_ == DownSends::difference ? bits_.dense : std::min(bits_.dense, bits_.model)) + 8 * sizeof(T) * kinds_.num_kept();
  switch (sends_) {
    case DownSends::changes: return changes_.bits(last, change_values(), bits_.model);
    case DownSends::model: return bits_.model;
    case DownSends::difference: return std::min(bits_until_.back() - bits_until_[last], bits_.dense);
  }
  return bits_.dense;
}

template <class T>
std::uint64_t Downlink<T>::bits_of_slot(const SharedState<T>& shared, const SlotSpec& slot) const {
  const std::size_t zeros = slot.length == 0 ? num_unshared(channel_.scope) : 0;
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

// Charges a client for its message. Bits beyond the message to clients that missed nothing are the price of its absence.
template <class T>
void Downlink<T>::charge(std::uint32_t client, std::uint64_t message, std::uint32_t round_before, Ledger& ledger) {
  const std::uint32_t last = last_round_[client];
  const std::uint64_t dense = sends_ == DownSends::difference ? bits_.dense : std::min(bits_.dense, bits_.model);
  if (last == 0 || (last == round_before && message == dense)) return ledger.count_down(client, message, DownCause::model);
  const std::uint64_t present = last == round_before ? message : std::min(message, bits_.present);
  if (present > 0) ledger.count_down(client, present, present == dense ? DownCause::model : DownCause::changes);
  if (message > present) ledger.count_down(client, message - present, DownCause::catch_up);
}

template <class T>
void Downlink<T>::send(const Exec& exec, std::uint32_t round, std::span<const T> model, std::span<const std::uint32_t> cohort,
                       const SharedState<T>& shared, Ledger& ledger) {
  std::uint64_t bits = bits_.dense;
  const auto round_before = static_cast<std::uint32_t>(bits_until_.size() - 1);  // that was not skipped; 0 = none
  if (round_before == 0 && sends_ == DownSends::difference)
    std::copy(model.begin(), model.end(), reference_.begin());
  else
    bits = move_reference(exec, round, model);
  bits_until_.resize(round, bits_until_.back());
  bits_until_.push_back(bits_until_.back() + bits);

  const std::uint64_t broadcast = broadcast_bits(shared), missed = missed_bits(shared);
  changes_.forget_bits();
  bits_.present = bits_since(round_before);
  since_.clear();
  since_.emplace(round_before, bits_.present);
  writing_.model = model;
  writing_.round = round;
  writing_.held.clear();
  writing_.messages.clear();
  if (writing_.keeps_messages && sends_ == DownSends::difference && round_before > 0) keep_message(round, model);
  for (const std::uint32_t client : cohort) {
    writing_.held.push_back(last_round_[client]);
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

template <class T>
const DownMessage& Downlink<T>::model_for(std::uint32_t position) {
  const auto [found, is_new] = writing_.messages.try_emplace(writing_.held.at(position));
  if (is_new) found->second = write_since(found->first);
  return found->second;
}

// Writes the message whose bits bits_since() counts.
template <class T>
DownMessage Downlink<T>::write_since(std::uint32_t last) {
  const bool is_difference = sends_ == DownSends::difference;
  if (last == 0) return is_difference || bits_.dense <= bits_.model ? write_dense_model() : write_model();
  if (sends_ == DownSends::changes) {
    const Payload<T>* changes = changes_since(last);
    if (changes == nullptr) return write_model();
    const codec::Channel<T> channel{changes, &change_scope()};
    std::vector<std::byte> bytes;
    codec::encode<T>(std::span(&channel, 1), bytes);
    return {.form = DownForm::changes,
            .since = last,
            .parts = {std::make_shared<const std::vector<std::byte>>(std::move(bytes))},
            .rounds = {}};
  }
  if (!is_difference) return write_model();
  if (bits_until_.back() - bits_until_[last] > bits_.dense) return write_dense_model();
  DownMessage missed{.form = DownForm::differences, .since = last, .parts = {}, .rounds = {}};
  for (const auto& [round, bytes] : writing_.differences) {
    if (round <= last) continue;
    missed.parts.push_back(bytes);
    missed.rounds.push_back(round);
  }
  return missed;
}

// Returns the entries of w that a dense model has: all of them but kept parameters.
template <class T>
std::vector<T> Downlink<T>::sent_of(std::span<const T> w) const {
  std::vector<T> sent;
  for_each_run_outside(kinds_.kept, 0, w.size(), [&](std::size_t begin, std::size_t end) {
    sent.insert(sent.end(), w.begin() + static_cast<std::ptrdiff_t>(begin), w.begin() + static_cast<std::ptrdiff_t>(end));
  });
  return sent;
}

template <class T>
DownMessage Downlink<T>::write_dense_model() const {
  const std::vector<T> sent = sent_of(reference());
  const Scope scope = whole_model(sent.size());
  Payload<T> payload;
  payload.clear(sent.size());
  payload.num_sent = sent.size();
  payload.value.resize_discard(sent.size());
  std::ranges::copy(sent, payload.value.begin());
  const codec::Channel<T> channel{&payload, &scope};
  std::vector<std::byte> bytes;
  codec::encode<T>(std::span(&channel, 1), bytes);
  return {.form = DownForm::dense, .since = 0, .parts = {std::make_shared<const std::vector<std::byte>>(std::move(bytes))}, .rounds = {}};
}

// An exact w is compressed once, for its length; here for its content.
template <class T>
DownMessage Downlink<T>::write_model() {
  Workspace workspace;
  if (is_exact_) static_cast<void>(compress(Exec{.workspace = &workspace}, writing_.round, writing_.model));
  return {.form = DownForm::message, .since = 0, .parts = {bytes_of_message(writing_.model)}, .rounds = {}};
}

// message_, and the averaged parameters of the model behind it.
template <class T>
std::shared_ptr<const std::vector<std::byte>> Downlink<T>::bytes_of_message(std::span<const T> model) const {
  std::vector<T> averaged(kinds_.num_averaged());
  gather_ranges(kinds_.averaged, model.data(), averaged.data());
  const codec::Channel<T> channel{&message_.on_wire(), &channel_.scope, {}, writing_.known};
  std::vector<std::byte> bytes;
  codec::encode<T>(std::span(&channel, 1), bytes, std::span<const T>(averaged));
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

template <class T>
void Downlink<T>::keep_message(std::uint32_t round, std::span<const T> model) {
  writing_.differences.emplace_back(round, bytes_of_message(model));
  std::uint64_t bits = 0;
  for (const auto& [kept, bytes] : writing_.differences) bits += 8 * bytes->size();
  while (bits > bits_.dense && writing_.differences.size() > 1) {
    bits -= 8 * writing_.differences.front().second->size();
    writing_.differences.pop_front();
  }
}

// Writes or reads the differences that clients who missed rounds are still sent.
template <class T>
void Downlink<T>::persist_messages(Archive& archive) {
  struct Difference {
    std::uint32_t round = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Difference> kept;
  for (const auto& [round, bytes] : writing_.differences) kept.push_back({round, *bytes});
  archive.section("missed messages");
  archive.list_of(kept, [&archive](Difference& one) {
    archive.value(one.round);
    archive.list(one.bytes);
  });
  if (!archive.is_reading()) return;
  writing_.differences.clear();
  for (Difference& one : kept) {
    if (one.round > last_round() || (!writing_.differences.empty() && one.round <= writing_.differences.back().first))
      throw ArchiveError("in 'missed messages': a message is of round " + std::to_string(one.round) + ", which does not fit");
    writing_.differences.emplace_back(one.round, std::make_shared<const std::vector<std::byte>>(std::move(one.bytes)));
  }
}

template class Downlink<float>;
template class Downlink<double>;

}  // namespace fl
