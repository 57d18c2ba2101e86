#include "net/server/opening_writer.hpp"

#include <algorithm>
#include <map>

#include "fl_core/round/absence_rule.hpp"
#include "net/wire/raw_values.hpp"

namespace fl::net {

namespace {

// Returns whether peers that missed a round are sent the slot: both sides derive it, and not only derive() reads it.
bool is_sent_after_absence(const SlotSpec& slot) {
  return (slot.sync == SlotSync::derived || slot.sync == SlotSync::last_model) && !slot.derive_alone_reads_it;
}

}  // namespace

template <class T>
OpeningWriter<T>::OpeningWriter(const RoundView<T>& round, const RoundOpening<T>& opening, const SharedState<T>& shared,
                                const RoundHistory& history, Traffic& traffic)
    : round_(round),
      opening_(opening),
      history_(history),
      traffic_(traffic),
      sections_{
          .initial = slot_bytes(shared, round.run.kinds.unshared, [](const SlotSpec& slot) { return slot.sync == SlotSync::initial; }),
          .missed = slot_bytes(shared, round.run.kinds.unshared, is_sent_after_absence),
          .broadcast = slot_bytes(shared, round.run.kinds.unshared, [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast; }),
          .replacement = shared_bytes(opening.replacement, std::span<const ParameterRange>(round.run.kinds.unshared))} {}

template <class T>
OutgoingFrame OpeningWriter<T>::frame_for(const std::vector<std::uint32_t>& positions) {
  const RoundOrder& order = round_.order;
  wire::Header header;
  wire::Open& open = *header.mutable_open();
  open.set_round(order.round);
  open.set_step_size(order.step_size);
  open.set_server_step(order.server_step);
  open.set_coin(order.coin);
  open.set_measure(order.measure);
  open.set_saved_round(history_.saved);
  for (const std::uint32_t position : positions) open.add_cohort(order.cohort[position]);
  Payload payload;
  add_models(positions, open, payload);
  add_sections(positions, open, payload);
  return make_frame(header, std::move(payload));
}

// Clients that held the model of the same round are sent the same bytes, once for each peer.
template <class T>
void OpeningWriter<T>::add_models(const std::vector<std::uint32_t>& positions, wire::Open& open, Payload& payload) {
  std::map<const DownMessage*, wire::Model*> known;
  for (const std::uint32_t position : positions) {
    const DownMessage& message = opening_.model->model_for(position);
    traffic_.down_bytes += message.bits() / 8;
    const auto [found, is_new] = known.try_emplace(&message, nullptr);
    if (is_new) {
      wire::Model& model = *(found->second = open.add_models());
      model.set_form(static_cast<std::uint32_t>(message.form));
      model.set_since(message.since);
      for (const std::uint32_t part : message.rounds) model.add_rounds(part);
      for (const auto& part : message.parts) {
        model.add_bytes(part->size());
        payload.push_back(part);
      }
    }
    found->second->set_num_clients(found->second->num_clients() + 1);
  }
}

// Slots, and the memory that takes the place of that of clients who come back.
template <class T>
void OpeningWriter<T>::add_sections(const std::vector<std::uint32_t>& positions, wire::Open& open, Payload& payload) {
  const auto count = [&](const auto& which) { return static_cast<std::uint64_t>(std::ranges::count_if(positions, which)); };
  const auto add = [&](const std::shared_ptr<const Bytes>& bytes, std::uint64_t receivers) {
    if (receivers == 0) return false;
    payload.push_back(bytes);
    traffic_.down_bytes += bytes->size() * receivers;
    return true;
  };
  open.set_has_initial_slots(add(sections_.initial, count([&](std::uint32_t p) { return opening_.model->held_by(p) == 0; })));
  open.set_has_missed_slots(add(sections_.missed, count([&](std::uint32_t p) { return opening_.model->held_by(p) != history_.before; })));
  add(sections_.broadcast, positions.size());
  if (opening_.replacement.empty()) return;
  const auto comes_back = [&](std::uint32_t p) {
    return missed_rounds(round_.order.round, history_.last_heard[round_.order.cohort[p]]) > 0;
  };
  open.set_has_replacement(add(sections_.replacement, count(comes_back)));
}

template class OpeningWriter<float>;
template class OpeningWriter<double>;

}  // namespace fl::net
