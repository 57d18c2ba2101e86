#include "net/server/hub_core.hpp"

#include <algorithm>

#include "fl_core/state/checkpoint.hpp"
#include "net/wire/client_ranges.hpp"
#include "net/wire/frame_rules.hpp"
#include "net/wire/row_hashes.hpp"

namespace fl::net {

namespace {

constexpr std::size_t kMostReasons = 64;  // of refusals, that are told apart
constexpr std::size_t kMostNews = 256;    // lines until they are taken
constexpr std::size_t kMostShown = 200;   // characters of a text that a peer has chosen
// Connections that ended before their peers were known: those that are told one by one in each period, and those that are remembered.
constexpr std::uint64_t kMostStrangersTold = 8;
constexpr std::chrono::seconds kStrangersPeriod{10};
constexpr std::ptrdiff_t kMostStrangersKept = 16;

// Returns a text of a peer as one short line.
std::string shown(std::string text) {
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::vector<ClientRange> ranges_in(const wire::Hello& hello) {
  std::vector<ClientRange> ranges;
  for (const wire::ClientRange& range : hello.clients()) {
    if (range.last() < range.first() || (!ranges.empty() && range.first() <= ranges.back().last))
      throw ProtocolError("the ids of a hello do not ascend");
    ranges.push_back({range.first(), range.last()});
  }
  if (ranges.empty()) throw ProtocolError("a hello names no client");
  return ranges;
}

// Returns the frame of an opening as a peer is sent it when the round is closed already.
OutgoingFrame as_replay(const OutgoingFrame& opening) {
  wire::Header header = parse_header(std::span(opening.head).subspan(kPrefixBytes));
  header.mutable_open()->set_is_replay(true);
  return make_frame(header, opening);
}

std::string too_many_refusals() { return "it was refused " + std::to_string(kMostRefusals) + " times"; }

}  // namespace

OutgoingFrame goodbye_frame(const std::string& reason, bool is_error, bool may_return) {
  wire::Header header;
  header.mutable_goodbye()->set_reason(reason);
  header.mutable_goodbye()->set_is_error(is_error);
  header.mutable_goodbye()->set_may_return(may_return);
  return make_frame(header);
}

// ---- peers

std::shared_ptr<Peer> HubCore::add(std::shared_ptr<Connection> connection) {
  auto peer = std::make_shared<Peer>(++last_id_, std::move(connection));
  peers_.emplace(peer->id(), peer);
  return peer;
}

// A peer that was ready for the last run may still answer it while it prepares the next one.
FrameLimits HubCore::limits_for(const Peer& peer) { return limits_of_peer(peer.most_payload() > 0, peer.most_payload()); }

// Returns the session that speaks through this connection, or null.
Session* HubCore::session_of(const Peer& peer) {
  Session* session = roster_.find(peer.host());
  return session != nullptr && session->peer == peer.id() ? session : nullptr;
}

void HubCore::take(Peer& peer, Frame frame) {
  switch (frame.header.kind_case()) {
    case wire::Header::kHello: return greet(peer, frame.header.hello());
    case wire::Header::kReady: return make_ready(peer, frame.header.ready());
    case wire::Header::kClosed: return take_closed(peer, frame.header.closed());
    case wire::Header::kHeartbeat: return;
    default: break;
  }
  const std::optional<Expected> answer = answer_in(frame.header);
  if (!answer) throw ProtocolError("a frame that only a server sends");
  take_answer(peer, *answer, std::move(frame));
}

void HubCore::greet(Peer& peer, const wire::Hello& hello) {
  if (peer.host() != kNobody) throw ProtocolError("a second hello");
  if (hello.protocol() != kProtocol)
    throw ProtocolError("it understands version " + std::to_string(hello.protocol()) + " of the protocol; this server version " +
                        std::to_string(kProtocol));
  if (hello.build() != build_fingerprint())
    throw ProtocolError("it is another build (" + shown(hello.build()) + "; the server is " + build_fingerprint() +
                        "), so its results could differ in their last bits");
  const std::vector<ClientRange> clients = ranges_in(hello);
  require_identity(peer, clients, hello.token());
  PeerId replaced = kNobody;
  Session& session = roster_.admit(peer.id(), clients, hello.token(), replaced);
  peer.set_host(session.id);
  if (const auto old = peers_.find(replaced); old != peers_.end()) {
    tell("the peer of clients " + to_text(clients) + " has connected again");
    old->second->close();
  }
  if (offer_.scenario != nullptr) assign(peer, session);
}

// A certificate speaks for its clients alone, and through one connection: another one takes its place only with the session's token.
void HubCore::require_identity(const Peer& peer, const std::vector<ClientRange>& clients, const std::string& token) {
  const Identity& identity = peer.connection().identity();
  if (!identity.may_host(clients))
    throw ProtocolError("its certificate " + identity.name + " speaks for clients " + to_text(identity.clients) + ", not " +
                        to_text(clients));
  if (!identity.is_proved()) return;
  PeerId& holder = by_certificate_[identity.name];
  if (const auto old = peers_.find(holder); old != peers_.end() && !old->second->has_left()) {
    const Session* session = session_of(*old->second);
    if (session == nullptr || token.empty() || session->token != token)
      throw PlaceTaken("another connection has the certificate " + identity.name + " already");
  }
  holder = peer.id();
}

void HubCore::assign(Peer& peer, const Session& session) {
  if (session.clients.back().last >= offer_.num_clients)
    return turn_away(peer, "the run has clients 0-" + std::to_string(offer_.num_clients - 1) + ", not " + to_text(session.clients));
  wire::Header header;
  wire::Assignment& assignment = *header.mutable_assignment();
  assignment.set_run(offer_.run);
  assignment.set_split(offer_.split);
  for (const ClientRange& range : session.clients) {
    wire::ClientRange& one = *assignment.add_clients();
    one.set_first(range.first);
    one.set_last(range.last);
  }
  assignment.set_token(session.next_token.empty() ? session.token : session.next_token);
  assignment.set_closed_round(session.closed);
  for (const std::uint64_t hash : stated_hashes(offer_.row_hashes, session.clients)) assignment.add_rows(hash);
  put(peer, make_frame(header, {offer_.scenario}));
  peer.note_assignment();
}

void HubCore::make_ready(Peer& peer, const wire::Ready& ready) {
  Session* session = session_of(peer);
  if (session == nullptr) throw ProtocolError("it is ready before its hello");
  if (session->is_ready) throw ProtocolError("it is ready twice");
  if (!peer.note_ready() || offer_.scenario == nullptr || ready.run() != offer_.run) return;  // of an earlier offer; another answer follows
  if (ready.split() != offer_.split)
    throw ProtocolError("its data are split in another way (hash " + std::to_string(ready.split()) + ", the server's " +
                        std::to_string(offer_.split) + ")");
  if (const Session& place = roster_.place_for(*session); !place.can_continue_from(ready.closed_round()))
    throw ProtocolError("its clients have the state of round " + std::to_string(ready.closed_round()) + ", and their last one is round " +
                        std::to_string(place.closed) + ": that state is lost");
  if (session->is_rival()) session = &give_place(peer, *session);
  peer.allow_payload(offer_.most_message_bytes);
  roster_.make_ready(*session);
  for (const PeerId rival : roster_.rivals_for(session->clients))
    if (const auto found = peers_.find(rival); found != peers_.end())
      turn_away(*found->second, "another peer was ready for these clients first", Return::yes);
  // Memories that the server waits for are asked for again, by the end of their round.
  const bool owes_memory = std::ranges::any_of(
      session->clients, [this](const ClientRange& range) { return answers_.is_owed(Expected::Kind::memory, range.first, range.last); });
  session->acknowledge(owes_memory ? std::min(ready.closed_round(), answers_.round() - 1) : ready.closed_round());
  send_again(peer, *session);
  note_change();
}

// Gives a peer that is ready the place of those that asked for its clients earlier and are not ready yet.
Session& HubCore::give_place(Peer& peer, const Session& rival) {
  std::vector<PeerId> displaced;
  Session& session = roster_.take_place(rival, displaced);
  peer.set_host(session.id);
  for (const PeerId other : displaced)
    if (const auto found = peers_.find(other); found != peers_.end())
      turn_away(*found->second, "another peer was ready for these clients first", Return::yes);
  return session;
}

// Sends the frames of rounds that the peer has not acknowledged. Its answers to them may be there already, as may the memories of its last
// round, which a peer that connects again sends once more.
void HubCore::send_again(Peer& peer, Session& session) {
  session.late.repeated = session.closed > 0 ? num_clients(session.clients) : 0;
  for (const PlayedRound& round : session.rounds) {
    session.late.repeated += round.num_answers;
    for (std::size_t i = 0; i < round.frames.size(); ++i)
      put(peer, round.is_closed && i == 0 ? as_replay(round.frames[i]) : round.frames[i]);
  }
  const OutgoingFrame* order = roster_.order_of(session);
  if (order == nullptr) return;
  session.late.repeated += num_clients(session.clients);
  put(peer, *order);
}

void HubCore::order(Session& session, OutgoingFrame frame) {
  roster_.keep_order(session, frame);
  if (!session.is_here()) return;
  if (const auto found = peers_.find(session.peer); found != peers_.end()) put(*found->second, std::move(frame));
}

void HubCore::put(Peer& peer, OutgoingFrame frame) {
  if (peer.is_ending()) return;
  if (peer.outbox_bytes() > most_outbox_bytes_) {
    const std::string why = "it does not read: " + std::to_string(peer.outbox_bytes()) + " bytes wait for it";
    count_refusal("it does not read");
    leave(peer, why);
    return peer.close();
  }
  peer.put(std::move(frame));
}

void HubCore::turn_away(Peer& peer, const std::string& why, Return may_return) {
  put(peer, goodbye_frame(why, true, may_return == Return::yes));
  leave(peer, why);
  peer.end();
}

void HubCore::leave(Peer& peer, const std::string& why) {
  if (peer.has_left()) return;
  peer.set_left();
  Session* session = session_of(peer);
  PeerFacts facts{.id = peer.id(), .address = peer.connection().remote(), .has_left = true, .why = why};
  if (session == nullptr) {
    if (peer.host() == kNobody) tell_of_stranger("a peer was turned away: " + why);
    return keep_departed(std::move(facts));
  }
  facts.clients = to_text(session->clients);
  facts.last_round = session->last_round;
  facts.refusals = session->refusals;
  const std::string news = "the peer of clients " + facts.clients + " has left: " + why;
  keep_departed(std::move(facts));
  tell(news);
  roster_.leave(*session, news);
  note_change();
}

// Strangers do not displace all peers that have left.
void HubCore::keep_departed(PeerFacts facts) {
  const auto is_stranger = [](const PeerFacts& one) { return one.clients.empty(); };
  if (is_stranger(facts) && std::ranges::count_if(departed_, is_stranger) >= kMostStrangersKept)
    departed_.erase(std::ranges::find_if(departed_, is_stranger));
  departed_.push_back(std::move(facts));
  if (departed_.size() > kMostDeparted) departed_.pop_front();
}

void HubCore::remove(Peer& peer) {
  const Identity& identity = peer.connection().identity();
  if (const auto held = by_certificate_.find(identity.name); held != by_certificate_.end() && held->second == peer.id())
    by_certificate_.erase(held);
  peers_.erase(peer.id());
  if (peer.host() != kNobody) changed.notify_all();
}

std::vector<PeerFacts> HubCore::facts() {
  std::vector<PeerFacts> facts;
  for (const auto& [id, peer] : peers_) {
    if (peer->is_ending()) continue;
    facts.push_back({.id = id, .address = peer->connection().remote()});
    const Session* session = session_of(*peer);
    if (session == nullptr) continue;
    facts.back().clients = to_text(session->clients);
    facts.back().is_ready = session->is_ready;
    facts.back().last_round = session->last_round;
    facts.back().refusals = session->refusals;
  }
  facts.insert(facts.end(), departed_.begin(), departed_.end());
  return facts;
}

// ---- the run

void HubCore::begin_run(const RunOffer& offer) {
  offer_ = offer;
  roster_.begin_run(offer.num_clients, offer.closed_rounds, offer.kept_rounds);
  offer_.kept_rounds.clear();
  answers_.expect({});
  const auto waiting = peers_;
  for (const auto& [id, peer] : waiting)
    if (const Session* session = session_of(*peer); session != nullptr) assign(*peer, *session);
}

void HubCore::end_run() {
  if (offer_.scenario == nullptr) return;
  wire::Header header;
  header.mutable_run_end()->set_run(offer_.run);
  const OutgoingFrame frame = make_frame(header);
  const auto waiting = peers_;
  for (const auto& [id, peer] : waiting)
    if (const Session* session = session_of(*peer); session != nullptr && session->is_ready) put(*peer, frame);
  offer_ = {};
}

void HubCore::send(Session& session, OutgoingFrame frame) {
  if (!session.rounds.empty()) session.rounds.back().frames.push_back(frame);
  if (!session.is_here()) return;
  if (const auto found = peers_.find(session.peer); found != peers_.end()) put(*found->second, std::move(frame));
}

void HubCore::tell_of_refusal(std::uint32_t client, std::uint32_t round, const std::string& why) {
  count_refusal("a message that is none: " + why);
  const Session* session = roster_.host_of(client);
  if (session == nullptr) return;
  const auto found = peers_.find(session->peer);
  if (found == peers_.end()) return;
  wire::Header header;
  header.mutable_refused()->set_round(round);
  header.mutable_refused()->set_client(client);
  header.mutable_refused()->set_reason(why);
  put(*found->second, make_frame(header));
}

void HubCore::refuse_message(std::uint32_t client, std::uint32_t round, const std::string& why) {
  tell_of_refusal(client, round, why);
  Session* session = roster_.host_of(client);
  if (session == nullptr) return;
  ++session->refusals;
  const auto found = peers_.find(session->peer);
  if (found != peers_.end() && session->is_banned()) turn_away(*found->second, too_many_refusals());
}

// Keeps the frame if the server waits for it. What comes late or twice for an honest reason is dropped and costs the peer nothing.
void HubCore::take_answer(Peer& peer, const Expected& what, Frame frame) {
  Session* session = session_of(peer);
  if (session == nullptr || (!session->is_ready && session->late.owed == 0)) throw ProtocolError("it answers before it is ready");
  if (!session->is_ready) return take_late(*session);
  if (roster_.host_of(what.client) != session) return refuse(*session, "it speaks for a client that it does not host");
  const std::size_t num_complete = answers_.num_complete();
  const ExpectedAnswers::Verdict verdict = answers_.take(what, std::move(frame));
  if (verdict == ExpectedAnswers::Verdict::accepted) {
    session->last_round = what.round;
    if (!session->rounds.empty() && session->rounds.back().round == what.round) ++session->rounds.back().num_answers;
    session->acknowledge(what.round - 1);
    if (answers_.is_over() || (tells_each_client && answers_.num_complete() > num_complete)) changed.notify_all();
    return;
  }
  const bool is_known = what.round > 0 && what.round <= answers_.round();
  if (is_known && session->late.repeated > 0) {
    --session->late.repeated;
    return;
  }
  if (verdict == ExpectedAnswers::Verdict::repeated) return refuse(*session, "the answer was there already");
  if (is_known && session->late.owed > 0) return take_late(*session);
  refuse(*session, what.round == answers_.round() ? "nobody waits for this answer" : "the answer is of another round");
}

void HubCore::take_late(Session& session) {
  --session.late.owed;
  ++counts_.late;
}

void HubCore::take_closed(Peer& peer, const wire::Closed& closed) {
  Session* session = session_of(peer);
  if (session == nullptr) throw ProtocolError("it closes a round before it is ready");
  if (!session->is_ready) return;  // of the last run
  if (closed.round() > session->closed) return refuse(*session, "it closes a round that is open or that it has no part in");
  session->acknowledge(closed.round());
  note_change();
}

std::vector<std::uint32_t> HubCore::lost_clients(double patience_s) {
  std::vector<std::uint32_t> lost;
  const auto patience = std::chrono::duration<double>(patience_s);
  for (const Expected& one : answers_.unanswered(false)) {
    const Session* session = roster_.host_of(one.client);
    if (session != nullptr && (session->peer != kNobody || Clock::now() - session->left.at < patience)) continue;
    if (lost.empty() || lost.back() != one.client) lost.push_back(one.client);
  }
  std::ranges::sort(lost);
  lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
  return lost;
}

Answers HubCore::finish_answers() {
  Answers answers = answers_.finish();
  for (const Expected& one : answers_.unanswered(true))
    if (Session* session = roster_.host_of(one.client); session != nullptr) ++session->late.owed;
  return answers;
}

// ---- counts

void HubCore::count_in(const Frame& frame) {
  ++counts_.frames_in;
  counts_.payload_bytes_in += frame.payload.size();
  counts_.bytes_in += kPrefixBytes + frame.header_bytes + frame.payload.size();
}

void HubCore::count_out(const OutgoingFrame& frame) {
  ++counts_.frames_out;
  counts_.payload_bytes_out += frame.payload_bytes();
  counts_.bytes_out += frame.head.size() + frame.payload_bytes();
}

// Peers choose what is wrong with what they send, and not how many reasons are kept.
void HubCore::count_refusal(const std::string& reason) {
  const bool is_known = counts_.refused.contains(reason) || counts_.refused.size() < kMostReasons;
  ++counts_.refused[is_known ? reason : "other reasons"];
}

void HubCore::refuse(Session& session, const std::string& reason) {
  count_refusal(reason);
  ++session.refusals;
  if (session.is_banned()) throw ProtocolError(too_many_refusals());
}

void HubCore::tell(const std::string& news) {
  if (news_.size() == kMostNews) news_.erase(news_.begin());
  news_.push_back(news);
}

void HubCore::tell_of_stranger(const std::string& news) {
  tell_of_untold();
  if (strangers_.told < kMostStrangersTold) {
    ++strangers_.told;
    tell(news);
  } else {
    ++strangers_.untold;
  }
}

void HubCore::tell_of_untold() {
  if (Clock::now() - strangers_.since < kStrangersPeriod) return;
  if (strangers_.untold > 0) tell(std::to_string(strangers_.untold) + " more connections were closed before their peers were known");
  strangers_ = {.since = Clock::now(), .told = 0, .untold = 0};
}

}  // namespace fl::net
