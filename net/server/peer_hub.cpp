#include "net/server/peer_hub.hpp"

#include <algorithm>

#include "net/server/hub_connections.hpp"
#include "net/server/hub_core.hpp"

namespace fl::net {

namespace {

constexpr std::chrono::milliseconds kTick{100};  // between two calls of goes_on()

}  // namespace

struct PeerHub::Impl {
  explicit Impl(const HubOptions& options) : core(options.most_outbox_bytes), connections(core, options) {}

  HubCore core;
  HubConnections connections;
  std::string farewell;
};

PeerHub::PeerHub(const HubOptions& options) : impl_(std::make_unique<Impl>(options)) { impl_->connections.run(); }

PeerHub::~PeerHub() {
  HubCore& core = impl_->core;
  impl_->connections.stop_listening();
  std::unique_lock lock(core.mutex);
  for (const auto& [id, peer] : core.peers()) {
    peer->put(goodbye_frame(impl_->farewell, !impl_->farewell.empty()));
    peer->end();
  }
  // Connections that have not said who they are, which may be many, are not waited for.
  const auto is_known = [](const auto& one) { return one.second->host() != kNobody; };
  core.changed.wait_for(lock, std::chrono::seconds(2), [&] { return std::ranges::none_of(core.peers(), is_known); });
}

void PeerHub::set_farewell(const std::string& reason) { impl_->farewell = reason; }

std::uint16_t PeerHub::port() const { return impl_->connections.port(); }

void PeerHub::set_run(const RunOffer* offer) {
  const std::lock_guard lock(impl_->core.mutex);
  offer != nullptr ? impl_->core.begin_run(*offer) : impl_->core.end_run();
}

Attendance PeerHub::wait_for_change(std::uint64_t seen, const std::function<bool()>& goes_on) {
  if (!goes_on()) throw Interrupted();
  HubCore& core = impl_->core;
  std::unique_lock lock(core.mutex);
  core.changed.wait_for(lock, kTick, [&] { return core.num_changes() != seen; });
  return {.num_changes = core.num_changes(), .num_hosted = core.roster().num_hosted()};
}

std::vector<MissingClient> PeerHub::missing() const {
  const std::lock_guard lock(impl_->core.mutex);
  Roster& roster = impl_->core.roster();
  const std::vector<std::uint32_t> unclaimed = roster.unclaimed();
  std::vector<MissingClient> missing;
  for (const std::uint32_t client : roster.missing()) {
    const Session* session = roster.host_of(client);
    missing.push_back({.client = client,
                       .is_claimed = !std::ranges::binary_search(unclaimed, client),
                       .why = session == nullptr ? "" : session->left.why});
  }
  return missing;
}

std::vector<HostId> PeerHub::hosts_of(std::span<const std::uint32_t> clients) {
  const std::lock_guard lock(impl_->core.mutex);
  std::vector<HostId> hosts;
  for (const std::uint32_t client : clients) {
    Session* session = impl_->core.roster().host_of(client);
    const bool can_play = session != nullptr && session->can_play();
    if (can_play) session->is_counted_on = true;
    hosts.push_back(can_play ? session->id : kNobody);
  }
  return hosts;
}

void PeerHub::send(Sending sending) {
  HubCore& core = impl_->core;
  const std::lock_guard lock(core.mutex);
  Session* session = core.roster().find(sending.host);
  if (sending.moment == Moment::closing) core.roster().close_round(sending.round, sending.clients, session);
  if (session == nullptr) return;
  if (sending.moment == Moment::opening) Roster::open_round(*session, sending.round);
  sending.moment == Moment::between ? core.order(*session, std::move(sending.frame)) : core.send(*session, std::move(sending.frame));
}

void PeerHub::expect(std::vector<Expected> frames, std::span<const std::uint8_t> required) {
  const std::lock_guard lock(impl_->core.mutex);
  impl_->core.answers().expect(std::move(frames), required);
}

void PeerHub::reject(std::uint32_t client, std::uint32_t round, const std::string& why, Penalty penalty) {
  const std::lock_guard lock(impl_->core.mutex);
  penalty == Penalty::counts ? impl_->core.refuse_message(client, round, why) : impl_->core.tell_of_refusal(client, round, why);
}

ClosedRounds PeerHub::closed_rounds() const {
  const std::lock_guard lock(impl_->core.mutex);
  const std::span<const std::uint32_t> rounds = impl_->core.roster().closed_rounds();
  return {.last = {rounds.begin(), rounds.end()}, .kept = impl_->core.roster().kept_rounds()};
}

bool PeerHub::all_acknowledged(bool also_away) const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.roster().all_acknowledged(also_away);
}

Answers PeerHub::collect(const Wait& wait, const std::function<bool()>& goes_on) {
  HubCore& core = impl_->core;
  std::unique_lock lock(core.mutex);
  core.tells_each_client = wait.closes_at != nullptr;
  for (;;) {
    const std::size_t seen = core.answers().num_complete();
    const std::optional<Clock::time_point> end = wait.closes_at ? wait.closes_at(core.answers().completed()) : wait.until;
    const Clock::time_point tick = Clock::now() + kTick;
    const auto has_news = [&] { return core.answers().is_over() || (core.tells_each_client && core.answers().num_complete() != seen); };
    const bool is_told = core.changed.wait_until(lock, std::min(end.value_or(tick), tick), has_news);
    if (core.answers().is_over()) break;
    if (is_told) continue;  // with another end
    if (!goes_on()) throw Interrupted();
    if (end && Clock::now() >= *end) break;
    if (wait.until) continue;
    const std::vector<std::uint32_t> lost = core.lost_clients(wait.patience_s);
    if (!lost.empty() && !wait.tolerates_absence) {
      const Session* session = core.roster().host_of(lost.front());
      throw Error(text_of_loss(lost, " in round " + std::to_string(core.answers().round()), wait.patience_s,
                               session == nullptr ? "" : session->left.why));
    }
    for (const std::uint32_t client : lost) core.answers().give_up(client);
  }
  return core.finish_answers();
}

WireCounts PeerHub::counts() const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.counts();
}

std::vector<PeerFacts> PeerHub::peers() const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.facts();
}

std::vector<std::string> PeerHub::news() {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.take_news();
}

}  // namespace fl::net
