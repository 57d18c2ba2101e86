#include "net/remote_cohort.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "net/opening_writer.hpp"
#include "net/raw_values.hpp"

namespace fl::net {

namespace {

using Kind = Expected::Kind;

std::vector<Expected> each(Kind kind, std::uint32_t round, int phase, std::span<const std::uint32_t> clients) {
  std::vector<Expected> frames;
  for (const std::uint32_t client : clients) frames.push_back({kind, round, static_cast<std::uint32_t>(phase), client});
  return frames;
}

}  // namespace

template <class T>
RemoteCohort<T>::RemoteCohort(PeerHub& hub, const ClientRequest<T>& request, std::function<bool()> goes_on, Traffic& traffic)
    : hub_(hub),
      goes_on_(std::move(goes_on)),
      method_(request.method),
      run_(request.run),
      shared_(request.shared),
      rule_(absence_rule(request.cell.scenario, request.method, request.run)),
      traffic_(traffic),
      last_heard_(request.run.num_clients) {
  if (!rule_.slot.empty() && request.measures.ever_needs(&MeasureCost::memories))
    mirror_ = std::make_unique<ErrorMirror<T>>(rule_, request);
}

// Tells each peer of its members of the cohort, and sends it what they miss.
template <class T>
void RemoteCohort<T>::open_round(const RoundView<T>& round, const RoundOpening<T>& opening) {
  const std::uint32_t before = open_.round;
  open_.round = round.order.round;
  open_.is_measured = round.order.measure;
  open_.cohort = round.order.cohort;
  if (mirror_ != nullptr) mirror_->open(open_.round, open_.cohort, opening.replacement);
  find_hosts();
  expect_phase(0);
  OpeningWriter<T> writer(round, opening, shared_, before, last_heard_, traffic_);
  for (std::size_t h = 0; h < open_.hosts.size(); ++h) hub_.send(open_.hosts[h], writer.frame_for(open_.positions[h]));
}

template <class T>
void RemoteCohort<T>::find_hosts() {
  open_.hosts.clear();
  open_.positions.clear();
  std::map<PeerId, std::size_t> known;
  for (std::uint32_t i = 0; i < open_.cohort.size(); ++i) {
    const PeerId host = hub_.peer_of(open_.cohort[i]);
    if (host == kNobody) throw Error("client " + std::to_string(open_.cohort[i]) + " has left before round " + std::to_string(open_.round));
    const auto [found, is_new] = known.try_emplace(host, open_.hosts.size());
    if (is_new) {
      open_.hosts.push_back(host);
      open_.positions.emplace_back();
    }
    open_.positions[found->second].push_back(i);
  }
}

template <class T>
void RemoteCohort<T>::expect_phase(int phase) {
  std::vector<Expected> frames = each(Kind::update, open_.round, phase, open_.cohort);
  if (open_.is_measured && phase == method_.exchange.num_phases() - 1)
    for (const Expected& norms : each(Kind::norms, open_.round, 0, open_.cohort)) frames.push_back(norms);
  hub_.expect(std::move(frames));
  open_.awaited_phase = phase;
}

template <class T>
void RemoteCohort<T>::skip_round(std::uint32_t round) {
  if (mirror_ != nullptr) mirror_->skip(round);
}

template <class T>
std::span<const ClientMessage<T>> RemoteCohort<T>::exchange(const RoundView<T>&, int phase) {
  if (open_.awaited_phase != phase) expect_phase(phase);
  received_.frames = hub_.collect(goes_on_);
  received_.messages.assign(open_.cohort.size(), {});
  for (std::size_t i = 0; i < open_.cohort.size(); ++i) {
    traffic_.up_bytes += received_.frames[i].payload.size();
    const std::string why = read_update(received_.frames[i], received_.messages[i]);
    if (why.empty()) continue;
    refuse(static_cast<std::uint32_t>(i), why);
    received_.messages[i] = {.client = open_.cohort[i], .is_counted = false, .refused = true, .encoded = {}};
  }
  if (received_.frames.size() == open_.cohort.size()) return received_.messages;
  received_.norms.assign(open_.cohort.size(), {});
  received_.operator_errors.assign(open_.cohort.size(), {});
  for (std::size_t i = 0; i < open_.cohort.size(); ++i) read_norms(received_.frames[open_.cohort.size() + i], i);
  return received_.messages;
}

template <class T>
std::string RemoteCohort<T>::read_update(const Frame& frame, ClientMessage<T>& message) const {
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
void RemoteCohort<T>::refuse(std::uint32_t position, const std::string& why) {
  const std::uint64_t bytes = received_.frames[position].payload.size();
  traffic_.up_bytes -= bytes;
  traffic_.refused_bytes += bytes;
  hub_.refuse(open_.cohort[position], open_.round, why);
}

template <class T>
void RemoteCohort<T>::read_norms(const Frame& frame, std::size_t position) {
  const wire::Norms& norms = frame.header.norms();
  if (norms.values_size() != 6) throw ProtocolError("the norms of a message are six numbers");
  received_.norms[position] = {norms.values(0), norms.values(1), norms.values(2), norms.values(3)};
  received_.operator_errors[position] = {norms.values(4), norms.values(5)};
}

template <class T>
const Payload<T>* RemoteCohort<T>::payload(std::size_t, std::uint32_t) const {
  throw Error("messages of remote clients are read from their bytes");
}

template <class T>
std::span<const T> RemoteCohort<T>::statistics(std::uint32_t) const {
  throw Error("statistics of remote clients are read from their messages");
}

// The clients go on with the next phase when they know the means of all channels that have one.
template <class T>
void RemoteCohort<T>::learn_mean(std::size_t channel, int phase, std::span<const T> mean) {
  if (open_.awaited_phase != phase + 1) expect_phase(phase + 1);
  wire::Header header;
  header.mutable_mean()->set_round(open_.round);
  header.mutable_mean()->set_phase(static_cast<std::uint32_t>(phase));
  header.mutable_mean()->set_channel(static_cast<std::uint32_t>(channel));
  const auto bytes = dense_message(mean);
  traffic_.down_bytes += bytes->size() * open_.cohort.size();
  for (const PeerId host : open_.hosts) hub_.send(host, make_frame(header, {bytes}));
}

template <class T>
void RemoteCohort<T>::close_round(const RoundView<T>&, std::span<const std::uint8_t> delivered) {
  const bool asks = rule_.replaces() || mirror_ != nullptr;
  if (asks) hub_.expect(each(Kind::memory, open_.round, 0, open_.cohort));
  const auto slots = slot_bytes(shared_, run_.statistics, [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast_at_close; });
  traffic_.down_bytes += slots->size() * open_.cohort.size();
  for (std::size_t h = 0; h < open_.hosts.size(); ++h) {
    std::string marks;
    for (const std::uint32_t position : open_.positions[h]) marks.push_back(static_cast<char>(delivered[position]));
    wire::Header header;
    header.mutable_close()->set_round(open_.round);
    header.mutable_close()->set_delivered(marks);
    header.mutable_close()->set_wants_memory(asks);
    hub_.send(open_.hosts[h], make_frame(header, {slots}));
  }
  open_.awaited_phase = kNoPhase;
  for (std::size_t i = 0; i < open_.cohort.size(); ++i)
    if (delivered[i] != 0) last_heard_[open_.cohort[i]] = open_.round;
  if (!asks) return;
  collect_memories();
  if (mirror_ != nullptr) mirror_->close(open_.round, received_.memories, delivered);
}

template <class T>
void RemoteCohort<T>::collect_memories() {
  const std::vector<Frame> frames = hub_.collect(goes_on_);
  received_.memories.resize(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    received_.memories[i].resize(run_.P);
    RawReader reader(frames[i].payload);
    reader.read_weights(std::span(received_.memories[i]), run_.statistics);
    reader.finish();
    (rule_.replaces() ? traffic_.up_bytes : traffic_.measured_bytes) += frames[i].payload.size();
  }
}

template <class T>
void RemoteCohort<T>::persist(Archive&) {
  throw Error("a run with remote clients writes no checkpoints");
}

template <class T>
void RemoteCohort<T>::Probe::keep_updates(bool keep) {
  if (keep) throw Error("remote clients do not send their vectors before compression");
}

template <class T>
std::vector<double> RemoteCohort<T>::Probe::error_memory_sum(std::uint32_t round, std::span<const double> replacement) {
  if (cohort_.mirror_ == nullptr) return std::vector<double>(cohort_.run_.P, std::numeric_limits<double>::quiet_NaN());
  return cohort_.mirror_->value(round, replacement);
}

template class RemoteCohort<float>;
template class RemoteCohort<double>;

}  // namespace fl::net
