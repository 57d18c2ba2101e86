#include "net/server/remote_cohort.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "fl_core/ops/norms.hpp"
#include "fl_core/ops/scaled_sums.hpp"
#include "net/server/kept_rounds.hpp"
#include "net/server/measured_sums.hpp"
#include "net/server/opening_writer.hpp"
#include "net/wire/raw_values.hpp"

namespace fl::net {

namespace {

using AnswerKind = Expected::Kind;

// Messages may be that much longer than a dense vector, and this much more (docs/protocol.md).
constexpr std::uint64_t kMostDense = 4, kMostHeader = 64 * 1024;

std::vector<Expected> each(AnswerKind kind, std::uint32_t round, int phase, std::span<const std::uint32_t> clients) {
  std::vector<Expected> frames;
  for (const std::uint32_t client : clients) frames.push_back({kind, round, static_cast<std::uint32_t>(phase), client});
  return frames;
}

std::shared_ptr<const Bytes> bytes_of(const std::string& text) {
  const auto raw = std::as_bytes(std::span(text));
  return std::make_shared<const Bytes>(raw.begin(), raw.end());
}

}  // namespace

template <class T>
RemoteCohort<T>::RemoteCohort(Peers& peers, const ClientRequest<T>& request, const Presence& presence, std::function<bool()> goes_on,
                              Traffic& traffic)
    : peers_(peers),
      request_(request),
      presence_(presence),
      goes_on_(std::move(goes_on)),
      rule_(absence_rule(request.cell.scenario, request.method, request.run)),
      traffic_(traffic),
      last_heard_(request.run.num_clients) {
  if (!rule_.slot.empty() && request.measures.ever_needs(&MeasureCost::memories))
    mirror_ = std::make_unique<ErrorMirror<T>>(rule_, request);
}

// ---- who is there

template <class T>
std::uint32_t RemoteCohort<T>::begin() {
  if (!has_begun_) begin_run();
  return open_.round;
}

template <class T>
void RemoteCohort<T>::begin_run() {
  const auto N = static_cast<std::uint32_t>(request_.run.num_clients);
  peers_.begin_run({.run = request_.cell.hash,
                    .split = request_.problem.split_hash(),
                    .scenario = bytes_of(request_.cell.resolved_toml),
                    .num_clients = N,
                    .most_message_bytes = kMostDense * request_.run.P * sizeof(T) + kMostHeader,
                    .row_hashes = request_.problem.row_hashes(),
                    .closed_rounds = closed_,
                    .kept_rounds = std::exchange(kept_, {})});
  has_begun_ = true;
  const std::size_t wanted = presence_.min_clients == 0 ? N : std::min(presence_.min_clients, N);
  wait_for_peers(wanted);
  last_hosted_ = Clock::now();
}

// Waits until peers host as many clients. A run that goes on has had its peers, so it waits for them as for peers that have left.
template <class T>
void RemoteCohort<T>::wait_for_peers(std::size_t wanted) {
  const bool goes_on = !closed_.empty();
  const auto patience = std::chrono::duration<double>(presence_.patience_s);
  auto last_claimed = Clock::now();
  for (Attendance now_here = peers_.attendance(); now_here.num_hosted < wanted;) {
    std::vector<std::uint32_t> unclaimed;
    for (const MissingClient& one : goes_on ? peers_.missing() : std::vector<MissingClient>())
      if (!one.is_claimed) unclaimed.push_back(one.client);
    const auto now = Clock::now();
    if (unclaimed.size() <= request_.run.num_clients - wanted) last_claimed = now;
    if (now - last_claimed > patience) throw Error(text_of_loss(peers_, unclaimed, " before the run went on", presence_.patience_s));
    now_here = peers_.wait_for_change(now_here.num_changes, goes_on_);
  }
}

template <class T>
std::vector<std::uint8_t> RemoteCohort<T>::present(std::uint32_t round, std::span<const std::uint32_t> cohort) {
  if (!has_begun_) begin_run();
  open_.timer = RoundTimer(presence_, num_stages());
  const std::vector<HostId> hosts = gather(round, cohort);
  std::vector<std::uint8_t> is_here;
  open_.host_of.clear();
  for (const HostId host : hosts) {
    is_here.push_back(host != kNobody ? 1 : 0);
    if (host != kNobody) open_.host_of.push_back(host);
  }
  return is_here;
}

// Waits for the peers of a cohort: for all of them if no client may be absent, else until enough clients are hosted at all.
template <class T>
std::vector<HostId> RemoteCohort<T>::gather(std::uint32_t round, std::span<const std::uint32_t> cohort) {
  const auto begun = Clock::now();
  const auto patience = std::chrono::duration<double>(presence_.patience_s);
  const std::optional<Clock::time_point> until = open_.timer.end_of(0);
  const std::size_t least = std::max<std::size_t>(1, presence_.min_clients);
  for (Attendance attendance = peers_.attendance();;) {
    std::vector<HostId> hosts = peers_.hosts_of(cohort);
    const std::size_t hosted = attendance.num_hosted;
    const auto now = Clock::now();
    if (hosted > 0) last_hosted_ = now;
    const bool all_are_here = std::ranges::find(hosts, kNobody) == hosts.end();
    if (all_are_here || (presence_.tolerates_absence() && hosted >= least)) return hosts;
    if (until ? now - last_hosted_ > patience : now - begun > patience) throw Error(why_nobody(round, cohort, hosts));
    if (until && now >= *until) return hosts;
    attendance = peers_.wait_for_change(attendance.num_changes, goes_on_);
  }
}

template <class T>
std::string RemoteCohort<T>::why_nobody(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const HostId> hosts) const {
  std::vector<std::uint32_t> gone;
  for (std::size_t i = 0; i < cohort.size(); ++i)
    if (hosts[i] == kNobody) gone.push_back(cohort[i]);
  if (presence_.tolerates_absence()) {
    gone.clear();
    for (const MissingClient& one : peers_.missing()) gone.push_back(one.client);
  }
  return text_of_loss(peers_, gone, " before round " + std::to_string(round), presence_.patience_s);
}

// ---- the round

// Tells each peer of its members of the cohort, and sends it what they miss.
template <class T>
void RemoteCohort<T>::open_round(const RoundView<T>& round, const RoundOpening<T>& opening) {
  const std::uint32_t before = open_.round;
  open_.open(round.order);
  if (mirror_ != nullptr) mirror_->open(open_.round, open_.cohort, opening.replacement);
  expect_phase(0);
  OpeningWriter<T> writer(round, opening, request_.shared, {before, open_.saved_round, last_heard_}, traffic_);
  for (std::size_t h = 0; h < open_.hosts.size(); ++h)
    peers_.send({.host = open_.hosts[h], .moment = Moment::opening, .round = open_.round, .frame = writer.frame_for(open_.positions[h])});
}

// Nobody waits for clients that are absent; what they send all the same is late.
template <class T>
void RemoteCohort<T>::expect_phase(int phase) {
  std::vector<Expected> frames = each(AnswerKind::update, open_.round, phase, open_.cohort);
  const auto add = [&](AnswerKind kind) { std::ranges::copy(each(kind, open_.round, 0, open_.cohort), std::back_inserter(frames)); };
  if (open_.is_measured && phase == request_.method.exchange.num_phases() - 1) add(AnswerKind::norms);
  if (asks_for_moves(phase)) add(AnswerKind::sums);
  std::vector<std::uint8_t> required;
  for (std::size_t i = 0; i < frames.size(); ++i) required.push_back(open_.is_absent[i % open_.cohort.size()] != 0 ? 0 : 1);
  peers_.expect(std::move(frames), required);
  open_.awaited_phase = phase;
}

template <class T>
Wait RemoteCohort<T>::wait_until_stage(int stage) const {
  return {.until = open_.timer.end_of(stage), .patience_s = presence_.patience_s, .tolerates_absence = presence_.tolerates_absence()};
}

template <class T>
void RemoteCohort<T>::skip_round(std::uint32_t round) {
  if (mirror_ != nullptr) mirror_->skip(round);
}

template <class T>
MessageBatch<T> RemoteCohort<T>::exchange(const RoundView<T>& round, int phase) {
  if (open_.awaited_phase != phase) expect_phase(phase);
  take_messages(round, collect_phase(phase), phase);
  return {.messages = received_.messages};
}

// A client's message counts in no phase after the first one in which it is absent or refused.
template <class T>
void RemoteCohort<T>::take_messages(const RoundView<T>& round, Answers answers, int phase) {
  const std::size_t M = open_.cohort.size();
  const bool has_moves = asks_for_moves(phase);
  const bool has_norms = answers.frames.size() > (has_moves ? 2 * M : M);
  const std::size_t groups = 1 + (has_norms ? 1 : 0) + (has_moves ? 1 : 0);
  received_.frames = std::move(answers.frames);
  received_.messages.assign(M, {});
  std::vector<StatedNorms> norms(has_norms ? M : 0);
  if (has_moves) received_.moves.assign(M, std::vector<double>(request_.run.kinds.num_kept()));
  for (std::size_t i = 0; i < M; ++i) {
    bool has_arrived = true;
    for (std::size_t g = 0; g < groups; ++g) has_arrived = has_arrived && answers.arrived[g * M + i] != 0;
    if (!has_arrived) open_.is_out[i] = open_.is_absent[i] = 1;
    ClientMessage<T>& message = received_.messages[i];
    traffic_.up_bytes += received_.frames[i].payload.size();
    if (open_.is_out[i] == 0) {
      std::string why = read_update(received_.frames[i], message);
      if (why.empty() && has_norms) why = read_norms(received_.frames[M + i], norms[i]);
      if (!why.empty()) refuse(static_cast<std::uint32_t>(i), why);
      if (message.refused) open_.is_out[i] = 1;
      if (has_moves && open_.is_out[i] == 0) read_move((groups - 1) * M, i);
    } else {
      move_to_refused(i);
    }
    if (open_.is_out[i] != 0)
      message = {.client = open_.cohort[i], .is_counted = false, .refused = true, .is_absent = open_.is_absent[i] != 0, .encoded = {}};
  }
  if (has_norms) take_norms(round, phase, std::move(norms));
}

// Keeps the norms that are believed. Those that are not cost the peer nothing: a model that has diverged may be the reason.
template <class T>
void RemoteCohort<T>::take_norms(const RoundView<T>& round, int phase, std::vector<StatedNorms> norms) {
  const std::vector<std::string> why = ReportedNorms<T>(request_).leave_out(round, phase, received_.messages, norms);
  received_.norms.clear();
  received_.operator_errors.clear();
  for (std::size_t i = 0; i < norms.size(); ++i) {
    received_.norms.push_back(norms[i].measures);
    received_.operator_errors.push_back(norms[i].operator_error);
    if (!why[i].empty()) peers_.reject(open_.cohort[i], open_.round, why[i], Penalty::none);
  }
}

template <class T>
bool RemoteCohort<T>::asks_for_moves(int phase) const {
  return !request_.run.kinds.kept.empty() && phase == request_.method.exchange.num_phases() - 1;
}

// Reads the move of the parameters that a client keeps from the frames behind `first`. A move that is refused counts as none.
template <class T>
void RemoteCohort<T>::read_move(std::size_t first, std::size_t position) {
  const Frame& frame = received_.frames[first + position];
  traffic_.measured_bytes += frame.payload.size();
  if (const std::string why = net::read_kept_move(frame, received_.moves[position]); !why.empty())
    peers_.reject(open_.cohort[position], open_.round, why, Penalty::counts);
}

template <class T>
std::string RemoteCohort<T>::read_update(const Frame& frame, ClientMessage<T>& message) const {
  const wire::Update& update = frame.header.update();
  message = {.client = update.client(), .is_counted = false, .refused = update.refused(), .encoded = {}};
  if (message.refused) return frame.payload.empty() ? "" : "it has a content that is not finite, and sends it";
  message.work = 1 + update.work_less_one();
  message.encoded = frame.payload;
  if (frame.payload.empty()) return "it is empty";
  const bool is_work = request_.run.normalises() ? message.work > 0 && message.work <= most_work(message.client) : message.work == 1;
  return is_work ? "" : "its work is out of range";
}

// Returns the work of a client that takes all its local steps: each of them adds at most 1 / (1 - momentum), and an optimizer says it.
template <class T>
double RemoteCohort<T>::most_work(std::uint32_t client) const {
  const LocalWork* work = request_.method.local->step_settings().work;
  const std::optional<Descent> descent = request_.method.local->descent();
  const double momentum = descent ? descent->momentum : 0;
  double steps = static_cast<double>(kMostLocalSteps);
  if (work != nullptr) steps = static_cast<double>(work->epochs > 0 ? work->epochs : work->steps);
  if (work != nullptr && work->epochs > 0) steps *= static_cast<double>(request_.problem.num_rows_of(client));
  constexpr double kRounding = 1e-9;
  const LocalOptimizer<T>* optimizer = request_.method.local->optimizer();
  if (descent && descent->by_optimizer)
    return optimizer->work(static_cast<std::uint32_t>(std::min(steps, double{kMostLocalSteps}))).value_or(0) * (1 + kRounding);
  return steps / (1 - momentum) * (1 + kRounding);
}

// The client hears of it at once, and with the round's end that its message did not count.
template <class T>
void RemoteCohort<T>::refuse(std::uint32_t position, const std::string& why) {
  move_to_refused(position);
  open_.is_out[position] = 1;
  peers_.reject(open_.cohort[position], open_.round, why, Penalty::counts);
}

template <class T>
void RemoteCohort<T>::move_to_refused(std::size_t position) {
  const std::uint64_t bytes = received_.frames[position].payload.size();
  traffic_.up_bytes -= bytes;
  traffic_.refused_bytes += bytes;
}

// A norm is NaN where the method has none.
template <class T>
std::string RemoteCohort<T>::read_norms(const Frame& frame, StatedNorms& norms) const {
  const wire::Norms& sent = frame.header.norms();
  if (sent.values_size() != 6) return "the norms of a message are six numbers";
  if (std::ranges::any_of(sent.values(), [](double value) { return value < 0; })) return "its norms are negative";
  norms.measures = {sent.values(0), sent.values(1), sent.values(2), sent.values(3)};
  norms.operator_error = {sent.values(4), sent.values(5)};
  return {};
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
  const OutgoingFrame frame = make_frame(header, {bytes});
  for (const HostId host : open_.hosts) peers_.send({.host = host, .round = open_.round, .frame = frame});
}

// ---- its end

template <class T>
void RemoteCohort<T>::close_round(const RoundView<T>&, std::span<const std::uint8_t> delivered) {
  const bool asks = asks_for_memory();
  if (asks) {
    std::vector<std::uint8_t> required;
    for (const std::uint8_t is_absent : open_.is_absent) required.push_back(is_absent != 0 ? 0 : 1);
    peers_.expect(each(AnswerKind::memory, open_.round, 0, open_.cohort), required);
  }
  const auto slots = slot_bytes(request_.shared, request_.run.kinds.unshared,
                                [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast_at_close; });
  traffic_.down_bytes += slots->size() * open_.cohort.size();
  OutgoingFrame frame;
  for (std::size_t h = 0; h < open_.hosts.size(); ++h) {
    std::string marks;
    std::vector<std::uint32_t> clients;
    for (const std::uint32_t position : open_.positions[h]) {
      marks.push_back(static_cast<char>(delivered[position]));
      clients.push_back(open_.cohort[position]);
    }
    wire::Header header;
    header.mutable_close()->set_round(open_.round);
    header.mutable_close()->set_delivered(marks);
    header.mutable_close()->set_wants_memory(asks);
    frame = h == 0 ? make_frame(header, {slots}) : make_frame(header, frame);
    peers_.send({.host = open_.hosts[h], .moment = Moment::closing, .round = open_.round, .clients = clients, .frame = frame});
  }
  open_.awaited_phase = RemoteRound::kNoPhase;
  for (std::size_t i = 0; i < open_.cohort.size(); ++i)
    if (delivered[i] != 0) last_heard_[open_.cohort[i]] = open_.round;
  if (!asks) return;
  collect_memories();
  if (mirror_ != nullptr) mirror_->close(open_.round, received_.memories, delivered);
}

template <class T>
void RemoteCohort<T>::collect_memories() {
  const Answers answers = peers_.collect(wait_until_stage(num_stages() - 1), goes_on_);
  received_.memories.resize(answers.frames.size());
  this->lost_memories_.assign(answers.frames.size(), 1);
  for (std::size_t i = 0; i < answers.frames.size(); ++i) {
    received_.memories[i].clear();
    if (answers.arrived[i] == 0 || open_.is_absent[i] != 0) continue;  // of an absent client, it may arrive or not
    const Frame& frame = answers.frames[i];
    if (const std::string why = read_memory(frame, received_.memories[i]); !why.empty()) {
      received_.memories[i].clear();
      traffic_.refused_bytes += frame.payload.size();
      peers_.reject(open_.cohort[i], open_.round, why, Penalty::counts);
      continue;
    }
    this->lost_memories_[i] = 0;
    (rule_.replaces() ? traffic_.up_bytes : traffic_.measured_bytes) += frame.payload.size();
  }
}

template <class T>
std::string RemoteCohort<T>::read_memory(const Frame& frame, std::vector<T>& memory) const {
  memory.resize(request_.run.P);
  try {
    RawReader reader(frame.payload);
    reader.read_shared(std::span(memory), request_.run.kinds.unshared);
    reader.finish();
  } catch (const ProtocolError& error) {
    return std::string("its memory cannot be read: ") + error.what();
  }
  const bool is_finite = std::ranges::all_of(memory, [](T value) { return std::isfinite(value); });
  if (!is_finite) return "its memory is not finite";
  return sum_of_squares(memory.data(), memory.size()) <= most_reported<T>(memory.size()) ? "" : "its memory is too large";
}

template <class T>
void RemoteCohort<T>::Probe::keep_updates(bool keep) {
  if (keep) throw Error("remote clients do not send their vectors before compression");
}

template <class T>
std::vector<double> RemoteCohort<T>::Probe::error_memory_sum(std::uint32_t round, std::span<const double> replacement) {
  if (cohort_.mirror_ == nullptr) return std::vector<double>(cohort_.request_.run.P, std::numeric_limits<double>::quiet_NaN());
  return cohort_.mirror_->value(round, replacement);
}

template <class T>
void RemoteCohort<T>::Probe::add_kept_moves(std::span<const std::uint8_t> delivered, std::span<double> mean) {
  for (std::size_t i = 0; i < cohort_.open_.cohort.size(); ++i)
    if (delivered[i] != 0)
      add_scaled<double>(cohort_.request_.run.weights[cohort_.open_.cohort[i]], std::span<const double>(cohort_.received_.moves[i]), mean);
}

template <class T>
void RemoteCohort<T>::Probe::read_kept_move(std::uint32_t position, std::span<double> move) {
  std::ranges::copy(cohort_.received_.moves[position], move.begin());
}

template class RemoteCohort<float>;
template class RemoteCohort<double>;

}  // namespace fl::net
