#include "net/remote_clients.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fl_core/config/key_error.hpp"
#include "net/raw_values.hpp"

namespace fl::net {

namespace {

using Kind = Expected::Kind;

// Messages may be that much longer than a dense vector, and this much more (docs/protocol.md).
constexpr std::uint64_t kMostDense = 4, kMostHeader = 64 * 1024;

std::vector<Expected> each(Kind kind, std::uint32_t round, int phase, std::span<const std::uint32_t> clients) {
  std::vector<Expected> frames;
  for (const std::uint32_t client : clients) frames.push_back({kind, round, static_cast<std::uint32_t>(phase), client});
  return frames;
}

std::shared_ptr<const Bytes> bytes_of(const std::string& text) {
  const auto raw = std::as_bytes(std::span(text));
  return std::make_shared<const Bytes>(raw.begin(), raw.end());
}

// Shared slots that travel in one way, one after another.
template <class T, class Which>
std::shared_ptr<const Bytes> slot_bytes(const SharedState<T>& shared, std::span<const Statistic> statistics, const Which& which) {
  Bytes bytes;
  for (const SlotSpec& slot : shared.specs())
    if (which(slot)) append_weights(bytes, shared.slot(slot.name), slot.length == 0 ? statistics : std::span<const Statistic>());
  return std::make_shared<const Bytes>(std::move(bytes));
}

// What both sides derive is sent to peers that missed a round, but for what derive() alone reads.
bool is_sent_after_absence(const SlotSpec& slot) {
  return (slot.sync == SlotSync::derived || slot.sync == SlotSync::last_model) && !slot.derive_alone_reads_it;
}

const auto kAtClose = [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast_at_close; };

}  // namespace

template <class T>
RemoteClients<T>::Memories::Memories(const AbsenceRule& rule, const ClientRequest<T>& request)
    : state(request.run.num_clients, request.cohort.most, request.run.P),
      absence(rule),
      sum(absence, request.run.weights,
          MemorySum<T>::pays_to_run(request.run.num_clients, request.cohort.likely,
                                    static_cast<std::uint64_t>(request.cell.scenario.evaluate.every)),
          state, request.pool) {
  for (const SlotSpec& slot : request.method.plan.slots)
    if (slot.name == rule.slot) state.declare({.name = slot.name, .owner = SlotOwner::client});
}

template <class T>
RemoteClients<T>::RemoteClients(PeerHub& hub, const ClientRequest<T>& request, std::function<bool()> goes_on, Traffic& traffic)
    : hub_(hub),
      goes_on_(std::move(goes_on)),
      method_(request.method),
      run_(request.run),
      shared_(request.shared),
      rule_(absence_rule(request.cell.scenario, request.method, request.run)),
      traffic_(traffic),
      last_heard_(request.run.num_clients) {
  if (run_.local_statistics)
    throw key_error("server.statistics", "statistics that stay with the clients cannot be measured over a network");
  if (request.measures.ever_needs(&MeasureCost::updates))
    throw key_error("evaluate", "a measure needs the clients' vectors before compression, which nobody sends over a network: leave it out");
  if (!rule_.slot.empty() && request.measures.ever_needs(&MeasureCost::memories)) mirror_ = std::make_unique<Memories>(rule_, request);
  asks_for_memories_ = rule_.replaces() || mirror_ != nullptr;
  hub_.begin_run({.run = request.cell.hash,
                  .split = request.problem.split_hash(),
                  .scenario = bytes_of(request.cell.resolved_toml),
                  .num_clients = static_cast<std::uint32_t>(run_.num_clients),
                  .most_message_bytes = kMostDense * run_.P * sizeof(T) + kMostHeader});
  if (!hub_.wait_until_ready(goes_on_)) throw Interrupted();
}

template <class T>
RemoteClients<T>::~RemoteClients() {
  hub_.end_run();
}

// Tells each peer of its members of the cohort, and sends it what they miss.
template <class T>
void RemoteClients<T>::open_round(const RoundView<T>& round, const RoundOpening<T>& opening) {
  const RoundOrder& order = round.order;
  before_ = round_;
  round_ = order.round;
  is_measured_ = order.measure;
  cohort_ = order.cohort;
  if (mirror_ != nullptr) {
    mirror_->state.open_round(cohort_);
    mirror_->sum.begin_round(round_, cohort_);
    mirror_->absence.settle(round_, cohort_, opening.replacement, mirror_->state);
  }
  find_hosts();
  expect_phase(0);
  const Sections sections{
      .initial = slot_bytes(shared_, run_.statistics, [](const SlotSpec& slot) { return slot.sync == SlotSync::initial; }),
      .missed = slot_bytes(shared_, run_.statistics, is_sent_after_absence),
      .broadcast = slot_bytes(shared_, run_.statistics, [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast; }),
      .replacement = weights_of(opening.replacement)};
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    wire::Header header;
    wire::Open& open = *header.mutable_open();
    open.set_round(round_);
    open.set_step_size(order.step_size);
    open.set_server_step(order.server_step);
    open.set_coin(order.coin);
    open.set_measure(order.measure);
    for (const std::uint32_t position : positions_[h]) open.add_cohort(cohort_[position]);
    std::vector<std::shared_ptr<const Bytes>> payload;
    add_models(positions_[h], *opening.model, open, payload);
    add_sections(positions_[h], *opening.model, !opening.replacement.empty(), sections, open, payload);
    hub_.send(hosts_[h], make_frame(header, std::move(payload)));
  }
}

// Clients that held the model of the same round are sent the same bytes, once for each peer.
template <class T>
void RemoteClients<T>::add_models(const std::vector<std::uint32_t>& positions, ModelWriter& writer, wire::Open& open,
                                  std::vector<std::shared_ptr<const Bytes>>& payload) {
  std::map<const DownMessage*, wire::Model*> known;
  for (const std::uint32_t position : positions) {
    const DownMessage& message = writer.model_for(position);
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
void RemoteClients<T>::add_sections(const std::vector<std::uint32_t>& positions, const ModelWriter& writer, bool replaces,
                                    const Sections& sections, wire::Open& open, std::vector<std::shared_ptr<const Bytes>>& payload) {
  const auto count = [&](const auto& which) { return static_cast<std::uint64_t>(std::ranges::count_if(positions, which)); };
  const auto add = [&](const std::shared_ptr<const Bytes>& bytes, std::uint64_t receivers) {
    if (receivers == 0) return false;
    payload.push_back(bytes);
    traffic_.down_bytes += bytes->size() * receivers;
    return true;
  };
  open.set_has_initial_slots(add(sections.initial, count([&](std::uint32_t p) { return writer.held_by(p) == 0; })));
  open.set_has_missed_slots(add(sections.missed, count([&](std::uint32_t p) { return writer.held_by(p) != before_; })));
  add(sections.broadcast, positions.size());
  if (!replaces) return;
  const auto comes_back = [&](std::uint32_t p) { return missed_rounds(round_, last_heard_[cohort_[p]]) > 0; };
  open.set_has_replacement(add(sections.replacement, count(comes_back)));
}

template <class T>
std::shared_ptr<const Bytes> RemoteClients<T>::weights_of(std::span<const T> vector) const {
  Bytes bytes;
  append_weights(bytes, vector, run_.statistics);
  return std::make_shared<const Bytes>(std::move(bytes));
}

template <class T>
void RemoteClients<T>::find_hosts() {
  hosts_.clear();
  positions_.clear();
  std::map<PeerId, std::size_t> known;
  for (std::uint32_t i = 0; i < cohort_.size(); ++i) {
    const PeerId host = hub_.peer_of(cohort_[i]);
    if (host == kNobody) throw Error("client " + std::to_string(cohort_[i]) + " has left before round " + std::to_string(round_));
    const auto [found, is_new] = known.try_emplace(host, hosts_.size());
    if (is_new) {
      hosts_.push_back(host);
      positions_.emplace_back();
    }
    positions_[found->second].push_back(i);
  }
}

template <class T>
void RemoteClients<T>::expect_phase(int phase) {
  std::vector<Expected> frames = each(Kind::update, round_, phase, cohort_);
  if (is_measured_ && phase == method_.exchange.num_phases() - 1)
    for (const Expected& norms : each(Kind::norms, round_, 0, cohort_)) frames.push_back(norms);
  hub_.expect(std::move(frames));
  awaited_phase_ = phase;
}

template <class T>
void RemoteClients<T>::skip_round(std::uint32_t round) {
  if (mirror_ != nullptr) mirror_->sum.begin_round(round, {});
}

template <class T>
std::span<const ClientMessage<T>> RemoteClients<T>::exchange(const RoundView<T>&, int phase) {
  if (awaited_phase_ != phase) expect_phase(phase);
  frames_ = hub_.collect(goes_on_);
  messages_.assign(cohort_.size(), {});
  for (std::size_t i = 0; i < cohort_.size(); ++i) {
    traffic_.up_bytes += frames_[i].payload.size();
    const std::string why = read_update(frames_[i], messages_[i]);
    if (why.empty()) continue;
    refuse(static_cast<std::uint32_t>(i), why);
    messages_[i] = {.client = cohort_[i], .is_counted = false, .refused = true, .encoded = {}};
  }
  if (frames_.size() == cohort_.size()) return messages_;
  norms_.assign(cohort_.size(), {});
  operator_errors_.assign(cohort_.size(), {});
  for (std::size_t i = 0; i < cohort_.size(); ++i) read_norms(frames_[cohort_.size() + i], i);
  return messages_;
}

template <class T>
std::string RemoteClients<T>::read_update(const Frame& frame, ClientMessage<T>& message) const {
  const wire::Update& update = frame.header.update();
  message = {.client = update.client(), .is_counted = false, .refused = update.refused(), .encoded = {}};
  if (message.refused) return frame.payload.empty() ? "" : "it has a content that is not finite, and sends it";
  message.work = 1 + update.work_less_one();
  message.encoded = frame.payload;
  if (frame.payload.empty()) return "it is empty";
  const bool is_work = run_.normalises() ? std::isfinite(message.work) && message.work > 0 : message.work == 1;
  return is_work ? "" : "its work is out of range";
}

// The client hears of it at once, and with the round's end that its message did not count.
template <class T>
void RemoteClients<T>::refuse(std::uint32_t position, const std::string& why) {
  const std::uint64_t bytes = frames_[position].payload.size();
  traffic_.up_bytes -= bytes;
  traffic_.refused_bytes += bytes;
  hub_.refuse(cohort_[position], round_, why);
}

template <class T>
void RemoteClients<T>::read_norms(const Frame& frame, std::size_t position) {
  const wire::Norms& norms = frame.header.norms();
  if (norms.values_size() != 6) throw ProtocolError("the norms of a message are six numbers");
  norms_[position] = {norms.values(0), norms.values(1), norms.values(2), norms.values(3)};
  operator_errors_[position] = {norms.values(4), norms.values(5)};
}

template <class T>
const Payload<T>* RemoteClients<T>::payload(std::size_t, std::uint32_t) const {
  throw Error("messages of remote clients are read from their bytes");
}

template <class T>
std::span<const T> RemoteClients<T>::statistics(std::uint32_t) const {
  throw Error("statistics of remote clients are read from their messages");
}

// The clients go on with the next phase when they know the means of all channels that have one.
template <class T>
void RemoteClients<T>::learn_mean(std::size_t channel, int phase, std::span<const T> mean) {
  if (awaited_phase_ != phase + 1) expect_phase(phase + 1);
  wire::Header header;
  header.mutable_mean()->set_round(round_);
  header.mutable_mean()->set_phase(static_cast<std::uint32_t>(phase));
  header.mutable_mean()->set_channel(static_cast<std::uint32_t>(channel));
  const auto bytes = dense_message(mean);
  traffic_.down_bytes += bytes->size() * cohort_.size();
  for (const PeerId host : hosts_) hub_.send(host, make_frame(header, {bytes}));
}

template <class T>
void RemoteClients<T>::close_round(const RoundView<T>&, std::span<const std::uint8_t> delivered) {
  if (asks_for_memories_) hub_.expect(each(Kind::memory, round_, 0, cohort_));
  const auto slots = slot_bytes(shared_, run_.statistics, kAtClose);
  traffic_.down_bytes += slots->size() * cohort_.size();
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    std::string marks;
    for (const std::uint32_t position : positions_[h]) marks.push_back(static_cast<char>(delivered[position]));
    wire::Header header;
    header.mutable_close()->set_round(round_);
    header.mutable_close()->set_delivered(marks);
    header.mutable_close()->set_wants_memory(asks_for_memories_);
    hub_.send(hosts_[h], make_frame(header, {slots}));
  }
  awaited_phase_ = kNoPhase;
  for (std::size_t i = 0; i < cohort_.size(); ++i)
    if (delivered[i] != 0) last_heard_[cohort_[i]] = round_;
  if (!asks_for_memories_) return;
  const std::vector<Frame> frames = hub_.collect(goes_on_);
  memories_.resize(cohort_.size());
  for (std::size_t i = 0; i < cohort_.size(); ++i) {
    memories_[i].resize(run_.P);
    RawReader reader(frames[i].payload);
    reader.read_weights(std::span(memories_[i]), run_.statistics);
    reader.finish();
    (rule_.replaces() ? traffic_.up_bytes : traffic_.measured_bytes) += frames[i].payload.size();
  }
  if (mirror_ == nullptr) return;
  for (std::uint32_t i = 0; i < cohort_.size(); ++i) {
    std::ranges::copy(memories_[i], mirror_->state.stored(rule_.slot, i, 1).row(0));
    if (delivered[i] != 0) mirror_->state.set_acknowledged(cohort_[i], round_);
  }
  mirror_->sum.end_round(cohort_);
}

template <class T>
void RemoteClients<T>::persist(Archive&) {
  throw Error("a run with remote clients writes no checkpoints");
}

template <class T>
void RemoteClients<T>::keep_updates(bool keep) {
  if (keep) throw Error("remote clients do not send their vectors before compression");
}

template <class T>
std::vector<double> RemoteClients<T>::error_memory_sum(std::uint32_t round, std::span<const double> replacement) {
  if (mirror_ == nullptr) return std::vector<double>(run_.P, std::numeric_limits<double>::quiet_NaN());
  return mirror_->sum.value(round, replacement);
}

template class RemoteClients<float>;
template class RemoteClients<double>;

RemoteSource::RemoteSource(PeerHub& hub, std::function<bool()> goes_on) : hub_(hub), goes_on_(std::move(goes_on)) {}

std::unique_ptr<RunClients<float>> RemoteSource::clients_of(const ClientRequest<float>& request) {
  return std::make_unique<RemoteClients<float>>(hub_, request, goes_on_, traffic_);
}

std::unique_ptr<RunClients<double>> RemoteSource::clients_of(const ClientRequest<double>& request) {
  return std::make_unique<RemoteClients<double>>(hub_, request, goes_on_, traffic_);
}

}  // namespace fl::net
