#include "net/server/roster.hpp"

#include <algorithm>
#include <iterator>
#include <random>

namespace fl::net {

namespace {

std::string random_token() {
  std::random_device random;
  std::string token;
  while (token.size() < 16)
    for (auto word = random(); word != 0 && token.size() < 16; word >>= 8) token.push_back(static_cast<char>(word & 0xff));
  return token;
}

// Calls `shares(i)` for each of the ranges that has a client of the others. Both ascend.
template <class Shares>
void for_shared_ranges(const std::vector<ClientRange>& ranges, const std::vector<ClientRange>& others, Shares shares) {
  auto other = others.begin();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    while (other != others.end() && other->last < ranges[i].first) ++other;
    if (other != others.end() && other->first <= ranges[i].last) shares(i);
  }
}

// Checks whether a peer without a token may ask for clients although a session has one of them. Throws PlaceTaken if the session's peer has
// been ready, and ProtocolError if the run can go on only with a peer of exactly the session's clients.
void require_free(const Session& owner, std::uint32_t shared, const std::vector<ClientRange>& clients) {
  const std::string client = "client " + std::to_string(shared);
  if (owner.peer != kNobody && owner.hold == Session::Hold::proof) throw PlaceTaken(client + " is hosted by another peer already");
  if (owner.clients != clients && (owner.peer == kNobody || owner.has_part()))
    throw ProtocolError(client + " belongs to a peer that has left: a peer that takes its place hosts " + to_text(owner.clients));
}

}  // namespace

void Session::acknowledge(std::uint32_t round) {
  while (!rounds.empty() && rounds.front().is_closed && rounds.front().round <= round) rounds.pop_front();
}

bool Session::can_continue_from(std::uint32_t round) const {
  if (round == closed) return true;
  return std::ranges::any_of(rounds, [round](const PlayedRound& one) { return one.is_closed && one.before == round; });
}

void Roster::begin_run(std::uint32_t num_clients, std::span<const std::uint32_t> closed, std::span<const KeptRounds> kept) {
  host_of_.assign(num_clients, kNobody);
  closed_.assign(closed.begin(), closed.end());
  closed_.resize(num_clients, 0);
  num_hosted_ = 0;
  orders_.clear();
  std::vector<HostId> gone;
  for (auto& [id, session] : sessions_) {
    if (session.peer == kNobody) gone.push_back(id);
    session.is_ready = session.was_ready = session.is_counted_on = false;
    session.rounds.clear();
    session.closed = last_closed(session.clients);
    session.last_round = 0;
    session.late.repeated = 0;
  }
  for (const HostId id : gone) forget(sessions_.at(id));
  for (const KeptRounds& one : kept) restore(one);
}

// Gives the rounds to the session of these clients. Where nobody has connected yet, it is one whose peer has left. A peer that has come
// with other clients cannot use them.
void Roster::restore(const KeptRounds& kept) {
  if (kept.rounds.empty() || kept.rounds.back().round != last_closed(kept.clients)) return;
  const std::vector<Owner> owners = owners_of(kept.clients);
  Session* session = owners.empty() ? nullptr : owners.front().session;
  if (session != nullptr && session->clients != kept.clients) return;
  if (session == nullptr) {
    session = &add(kept.clients);
    session->left.at = Clock::now();
    session->left.why = "it has not connected since the server went on";
  }
  session->was_ready = true;  // the rounds outlive connections that end before the peer has proved its state
  session->rounds.assign(kept.rounds.begin(), kept.rounds.end());
}

std::vector<KeptRounds> Roster::kept_rounds() const {
  std::vector<KeptRounds> kept;
  for (const auto& [id, session] : sessions_) {
    KeptRounds one{.clients = session.clients, .rounds = {}};
    std::ranges::copy_if(session.rounds, std::back_inserter(one.rounds), [](const PlayedRound& round) { return round.is_closed; });
    if (!one.rounds.empty()) kept.push_back(std::move(one));
  }
  return kept;
}

Session& Roster::admit(PeerId peer, const std::vector<ClientRange>& clients, const std::string& token, PeerId& replaced) {
  replaced = kNobody;
  if (const auto known = by_token_.find(token); known != by_token_.end())
    return readmit(sessions_.at(known->second), peer, clients, replaced);
  Session* session = nullptr;
  bool has_rivals = false;
  for (const auto& [owner, shared] : owners_of(clients)) {
    require_free(*owner, shared, clients);
    has_rivals = has_rivals || owner->peer != kNobody;
    session = owner;
  }
  if (session == nullptr)
    session = &add(clients);
  else if (has_rivals)
    session = &add_rival(clients);
  session->peer = peer;
  session->is_ready = false;
  if (!session->is_rival()) session->hold = Session::Hold::hello;
  session->next_token = random_token();
  return *session;
}

Session& Roster::readmit(Session& session, PeerId peer, const std::vector<ClientRange>& clients, PeerId& replaced) {
  if (session.clients != clients)
    throw ProtocolError("its session has the clients " + to_text(session.clients) + ", not " + to_text(clients));
  if (session.is_banned()) throw ProtocolError("it was refused " + std::to_string(kMostRefusals) + " times");
  replaced = session.peer;
  if (session.is_here()) count_hosted(session, false);
  session.next_token.clear();
  session.peer = peer;
  session.is_ready = false;
  session.hold = Session::Hold::proof;
  return session;
}

const Session& Roster::place_for(const Session& session) {
  if (!session.is_rival()) return session;
  const std::vector<Owner> owners = owners_of(session.clients);
  const bool has_owner = !owners.empty() && owners.front().session->clients == session.clients;
  return has_owner ? *owners.front().session : session;
}

Session& Roster::take_place(const Session& rival, std::vector<PeerId>& displaced) {
  const std::vector<ClientRange> clients = rival.clients;
  const PeerId peer = rival.peer;
  const std::string token = rival.next_token;
  const std::vector<Owner> owners = owners_of(clients);
  for (const auto& [owner, shared] : owners) require_free(*owner, shared, clients);
  Session* place = owners.empty() || owners.front().session->clients != clients ? nullptr : owners.front().session;
  for (const auto& [owner, shared] : owners) {
    if (owner->peer != kNobody) displaced.push_back(owner->peer);
    if (owner != place) forget(*owner);
  }
  sessions_.erase(rival.id);
  if (place == nullptr) place = &add(clients);
  place->peer = peer;
  place->next_token = token;
  place->is_ready = false;
  return *place;
}

std::vector<PeerId> Roster::rivals_for(const std::vector<ClientRange>& clients) const {
  std::vector<PeerId> rivals;
  for (const auto& [id, session] : sessions_) {
    bool is_shared = false;
    if (session.is_rival()) for_shared_ranges(session.clients, clients, [&is_shared](std::size_t) { is_shared = true; });
    if (is_shared) rivals.push_back(session.peer);
  }
  return rivals;
}

void Roster::make_ready(Session& session) {
  if (!session.next_token.empty()) {
    by_token_.erase(session.token);
    session.token = std::exchange(session.next_token, {});
    by_token_[session.token] = session.id;
    session.refusals = 0;
  }
  session.is_ready = session.was_ready = true;
  session.hold = Session::Hold::proof;
  for (const auto& [first, last] : session.clients) std::fill(host_of_.begin() + first, host_of_.begin() + last + 1, session.id);
  count_hosted(session, true);
}

void Roster::leave(Session& session, const std::string& why) {
  if (session.is_rival()) {
    sessions_.erase(session.id);
    return;
  }
  if (session.is_here()) {
    count_hosted(session, false);
    session.left.at = Clock::now();
    session.left.why = why;
  }
  session.peer = kNobody;
  session.is_ready = false;
  session.next_token.clear();
  if (!session.was_ready || (!session.has_part() && !session.is_banned())) forget(session);
}

void Roster::forget_rounds_of_left(Clock::time_point before) {
  for (auto& [id, session] : sessions_) {
    if (session.peer != kNobody || !session.was_ready || session.left.at >= before) continue;
    while (!session.rounds.empty() && session.rounds.front().is_closed) session.rounds.pop_front();
  }
}

Session* Roster::find(HostId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

Session* Roster::host_of(std::uint32_t client) { return client < host_of_.size() ? find(host_of_[client]) : nullptr; }

std::vector<std::uint32_t> Roster::missing() const {
  std::vector<std::uint32_t> clients;
  for (std::uint32_t client = 0; client < host_of_.size(); ++client) {
    const auto host = sessions_.find(host_of_[client]);
    if (host == sessions_.end() || !host->second.is_here()) clients.push_back(client);
  }
  return clients;
}

std::vector<std::uint32_t> Roster::unclaimed() const {
  std::vector<std::uint8_t> is_claimed(host_of_.size());
  for (const auto& [id, session] : sessions_) {
    if (session.peer == kNobody) continue;
    for (const auto& [first, last] : session.clients)
      for (std::uint64_t client = first; client <= last && client < is_claimed.size(); ++client) is_claimed[client] = 1;
  }
  std::vector<std::uint32_t> clients;
  for (std::uint32_t client = 0; client < is_claimed.size(); ++client)
    if (is_claimed[client] == 0) clients.push_back(client);
  return clients;
}

void Roster::open_round(Session& session, std::uint32_t round) {
  session.rounds.push_back({.round = round, .before = session.closed, .is_closed = false, .num_answers = 0, .frames = {}});
}

void Roster::close_round(std::uint32_t round, std::span<const std::uint32_t> clients, Session* session) {
  orders_.clear();
  for (const std::uint32_t client : clients) closed_[client] = round;
  if (session == nullptr || session->rounds.empty() || session->rounds.back().round != round) return;
  session->rounds.back().is_closed = true;
  session->closed = round;
}

bool Roster::all_acknowledged(bool also_away) const {
  return std::ranges::all_of(sessions_, [also_away](const auto& one) {
    const Session& session = one.second;
    return (!also_away && !session.is_here()) || session.rounds.empty() || !session.rounds.front().is_closed;
  });
}

// Returns the sessions that have one of the clients, rivals left out, in the order of their clients.
std::vector<Roster::Owner> Roster::owners_of(const std::vector<ClientRange>& clients) {
  std::vector<Owner> owners;
  for (const ClientRange& mine : clients) {
    for (auto next = by_last_.lower_bound(mine.first); next != by_last_.end() && next->second.first <= mine.last; ++next) {
      Session* session = &sessions_.at(next->second.second);
      if (std::ranges::find(owners, session, &Owner::session) == owners.end())
        owners.push_back({session, std::max(mine.first, next->second.first)});
    }
  }
  return owners;
}

Session& Roster::add(const std::vector<ClientRange>& clients) {
  Session& session = sessions_[++last_id_];
  session.id = last_id_;
  session.clients = clients;
  session.closed = last_closed(clients);
  for (const ClientRange& range : clients) by_last_[range.last] = {range.first, session.id};
  return session;
}

Session& Roster::add_rival(const std::vector<ClientRange>& clients) {
  std::vector<std::size_t> waiting(clients.size());
  for (const auto& [id, session] : sessions_)
    if (session.is_rival()) for_shared_ranges(clients, session.clients, [&waiting](std::size_t i) { ++waiting[i]; });
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (waiting[i] >= kMostRivals)
      throw PlaceTaken(std::to_string(waiting[i]) + " peers wait for clients " + to_text({clients[i]}) + " already");
  Session& session = sessions_[++last_id_];
  session.id = last_id_;
  session.clients = clients;
  session.closed = last_closed(clients);
  session.hold = Session::Hold::rival;
  return session;
}

void Roster::forget(Session& session) {
  for (const auto& [first, last] : session.clients) {
    by_last_.erase(last);
    for (std::uint32_t client = first; client <= last && client < host_of_.size(); ++client)
      if (host_of_[client] == session.id) host_of_[client] = kNobody;
  }
  by_token_.erase(session.token);
  sessions_.erase(session.id);
}

void Roster::count_hosted(const Session& session, bool is_here) {
  const std::uint64_t clients = num_clients(session.clients);
  num_hosted_ = is_here ? num_hosted_ + clients : num_hosted_ - clients;
}

std::uint32_t Roster::last_closed(const std::vector<ClientRange>& clients) const {
  std::uint32_t round = 0;
  for (const auto& [first, last] : clients)
    for (std::uint32_t client = first; client <= last && client < closed_.size(); ++client) round = std::max(round, closed_[client]);
  return round;
}

}  // namespace fl::net
