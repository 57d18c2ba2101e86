#include "net/server/peer_hub.hpp"

#include <algorithm>

#include "net/server/hub_connections.hpp"
#include "net/server/hub_core.hpp"
#include "net/wire/client_ranges.hpp"

namespace fl::net {

namespace {

constexpr std::chrono::milliseconds kTick{100};  // between two calls of goes_on()

// Returns "client 3" or "clients 3,5-7", and the verb.
std::string clients_have_left(const std::vector<std::uint32_t>& clients) {
  return (clients.size() == 1 ? "client " : "clients ") + to_text(ranges_of(clients)) + (clients.size() == 1 ? " has left" : " have left");
}

std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

std::string text_of_lost(HubCore& core, const std::vector<std::uint32_t>& clients, const std::string& when, double patience_s) {
  const Session* session = clients.empty() ? nullptr : core.roster().host_of(clients.front());
  return clients_have_left(clients) + when + ", and no peer takes the place within " + seconds_text(patience_s) +
         (session == nullptr || session->left.why.empty() ? "" : ": " + session->left.why);
}

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

void PeerHub::begin_run(const RunOffer& offer) {
  const std::lock_guard lock(impl_->core.mutex);
  impl_->core.begin_run(offer);
}

void PeerHub::end_run() {
  const std::lock_guard lock(impl_->core.mutex);
  impl_->core.end_run();
}

std::size_t PeerHub::num_hosted() const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.roster().num_hosted();
}

std::vector<std::uint32_t> PeerHub::missing() const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.roster().missing();
}

std::vector<std::uint32_t> PeerHub::unclaimed() const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.roster().unclaimed();
}

std::string PeerHub::why_left(const std::vector<std::uint32_t>& clients, const std::string& when, double patience_s) const {
  const std::lock_guard lock(impl_->core.mutex);
  return text_of_lost(impl_->core, clients, when, patience_s);
}

std::vector<HostId> PeerHub::hosts_of(std::span<const std::uint32_t> cohort) {
  const std::lock_guard lock(impl_->core.mutex);
  std::vector<HostId> hosts;
  for (const std::uint32_t client : cohort) {
    Session* session = impl_->core.roster().host_of(client);
    const bool can_play = session != nullptr && session->can_play();
    if (can_play) session->is_counted_on = true;
    hosts.push_back(can_play ? session->id : kNobody);
  }
  return hosts;
}

std::uint64_t PeerHub::num_changes() const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.num_changes();
}

void PeerHub::wait_for_change(std::uint64_t seen, const std::function<bool()>& goes_on) {
  if (!goes_on()) throw Interrupted();
  std::unique_lock lock(impl_->core.mutex);
  impl_->core.changed.wait_for(lock, kTick, [&] { return impl_->core.num_changes() != seen; });
}

void PeerHub::open_round(std::uint32_t round, std::span<const HostId> hosts) {
  const std::lock_guard lock(impl_->core.mutex);
  for (const HostId host : hosts)
    if (Session* session = impl_->core.roster().find(host); session != nullptr) Roster::open_round(*session, round);
}

void PeerHub::send(HostId host, OutgoingFrame frame) {
  const std::lock_guard lock(impl_->core.mutex);
  if (Session* session = impl_->core.roster().find(host); session != nullptr) impl_->core.send(*session, std::move(frame));
}

void PeerHub::order(HostId host, OutgoingFrame frame) {
  const std::lock_guard lock(impl_->core.mutex);
  if (Session* session = impl_->core.roster().find(host); session != nullptr) impl_->core.order(*session, std::move(frame));
}

void PeerHub::close_round(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const HostId> hosts) {
  const std::lock_guard lock(impl_->core.mutex);
  impl_->core.roster().close_round(round, cohort, hosts);
}

std::vector<std::uint32_t> PeerHub::closed_rounds() const {
  const std::lock_guard lock(impl_->core.mutex);
  const std::span<const std::uint32_t> rounds = impl_->core.roster().closed_rounds();
  return {rounds.begin(), rounds.end()};
}

std::vector<KeptRounds> PeerHub::kept_rounds() const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.roster().kept_rounds();
}

bool PeerHub::all_acknowledged(bool also_away) const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.roster().all_acknowledged(also_away);
}

void PeerHub::expect(std::vector<Expected> frames, std::span<const std::uint8_t> required, std::size_t enough) {
  const std::lock_guard lock(impl_->core.mutex);
  impl_->core.answers().expect(std::move(frames), required, enough);
}

void PeerHub::refuse(std::uint32_t client, std::uint32_t round, const std::string& why) {
  const std::lock_guard lock(impl_->core.mutex);
  impl_->core.refuse_message(client, round, why);
}

void PeerHub::leave_out(std::uint32_t client, std::uint32_t round, const std::string& why) {
  const std::lock_guard lock(impl_->core.mutex);
  impl_->core.tell_of_refusal(client, round, why);
}

Answers PeerHub::collect(const Wait& wait, const std::function<bool()>& goes_on) {
  HubCore& core = impl_->core;
  std::unique_lock lock(core.mutex);
  const auto is_over = [&core] { return core.answers().is_over(); };
  for (;;) {
    const Clock::time_point tick = Clock::now() + kTick;
    if (core.changed.wait_until(lock, std::min(wait.until.value_or(tick), tick), is_over)) break;
    if (!goes_on()) throw Interrupted();
    if (wait.until && Clock::now() >= *wait.until) break;
    if (wait.until) continue;
    const std::vector<std::uint32_t> lost = core.lost_clients(wait.patience_s);
    if (!lost.empty() && !wait.tolerates_absence)
      throw Error(text_of_lost(core, lost, " in round " + std::to_string(core.answers().round()), wait.patience_s));
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
