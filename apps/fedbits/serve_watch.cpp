#include "apps/fedbits/serve_watch.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/study_watch.hpp"
#include "fl_core/state/checksum.hpp"
#include "status/status_page.hpp"
#include "study/driver/study_title.hpp"

namespace fl {

namespace {

using namespace std::chrono_literals;

std::uint64_t rounds_of(const std::vector<Cell>& cells) {
  std::uint64_t rounds = 0;
  for (const Cell& cell : cells) rounds += static_cast<std::uint64_t>(std::max<std::int64_t>(cell.scenario.rounds, 0));
  return rounds;
}

}  // namespace

void PeerNews::tell(const std::vector<net::PeerFacts>& peers, const net::WireCounts& counts) {
  for (const net::PeerFacts& peer : peers) {
    const EventLog::Fields fields = {{"peer", peer.id}, {"clients", net::shortened(peer.clients)}, {"address", peer.address}};
    if (peer.is_ready && joined_.insert(peer.id).second)
      log_.info("peer_joined", fields, "the peer of clients " + peer.clients + " has joined");
    if (!peer.has_left || !left_.insert(peer.id).second) continue;
    EventLog::Fields more = fields;
    more.emplace_back("last_round", std::uint64_t{peer.last_round});
    more.emplace_back("reason", net::shortened(peer.why));
    log_.warn("peer_left", more);  // as a sentence it is among the hub's news
  }
  for (const auto& [reason, times] : counts.refused) {
    const std::uint64_t before = std::exchange(refused_[reason], times);
    if (times > before) log_.warn("refused", {{"reason", net::shortened(reason)}, {"times", times}, {"more", times - before}});
  }
  // The hub remembers the last peers that have left; of those before them nothing is told any more.
  std::erase_if(left_,
                [&](net::PeerId id) { return std::ranges::none_of(peers, [id](const net::PeerFacts& peer) { return peer.id == id; }); });
  std::erase_if(joined_,
                [&](net::PeerId id) { return std::ranges::none_of(peers, [id](const net::PeerFacts& peer) { return peer.id == id; }); });
}

ServeWatch::ServeWatch(net::PeerHub& hub, const std::vector<Cell>& cells, const std::string& address, const EventLog& log)
    : hub_(hub),
      log_(log),
      news_(log),
      status_(cells.empty() ? "" : cells.front().scenario.name, cells.size(), rounds_of(cells), steady_seconds()) {
  if (!address.empty()) {
    const Address at = status_address(address);
    net::StatusRoutes routes = net::page_routes();
    const auto locked = [this](auto text) {
      return [this, text] {
        const std::lock_guard lock(mutex_);
        return (status_.*text)(steady_seconds());
      };
    };
    routes["/status.json"] = {net::kJsonType, locked(&net::ServeStatus::json), true};
    routes["/metrics"] = {net::kMetricsType, locked(&net::ServeStatus::metrics)};
    server_ = std::make_unique<net::StatusServer>(net::StatusOptions{.host = at.host, .port = at.port}, std::move(routes));
    server_->start();
    std::cout << "status at " << status_url(at, server_->port()) << std::endl;
    log_.info("status_listening", {{"url", status_url(at, server_->port())}});
  }
  thread_ = std::thread([this] { look_again_and_again(); });
}

ServeWatch::~ServeWatch() {
  close("failed", "");
  server_.reset();
}

void ServeWatch::look() {
  std::vector<net::PeerFacts> peers = hub_.peers();
  net::WireCounts counts = hub_.counts();
  news_.tell(peers, counts);
  const std::lock_guard lock(mutex_);
  status_.see(std::move(peers), std::move(counts));
}

void ServeWatch::look_again_and_again() {
  for (;;) {
    look();
    tell_waiting();
    std::unique_lock lock(mutex_);
    if (ends_.wait_for(lock, 500ms, [this] { return is_over_; })) return;
  }
}

void ServeWatch::tell_waiting() {
  constexpr double kAgain_s = 10;
  if (log_.is_quiet()) return;
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text = status_.waiting();
  }
  const double now = steady_seconds();
  if (text.empty() || (text == told_ && now - told_s_ < kAgain_s)) return;
  told_ = text;
  told_s_ = now;
  std::cout << "waiting for peers: " << text << std::endl;
}

void ServeWatch::begin(const Cell& cell, std::size_t number, std::size_t count) {
  const net::RunShown run{.run = to_hex(cell.hash),
                          .title = title_of(cell, number, count),
                          .seed = cell.scenario.seeds.data,
                          .rounds = static_cast<std::uint64_t>(std::max<std::int64_t>(cell.scenario.rounds, 0)),
                          .clients = static_cast<std::uint64_t>(cell.scenario.partition.clients)};
  log_.info("run_begun", {{"run", run.run}, {"title", run.title}, {"seed", run.seed}, {"rounds", run.rounds}, {"clients", run.clients}});
  const std::lock_guard lock(mutex_);
  status_.begin(run, steady_seconds());
}

void ServeWatch::add(const Cell& cell, const RoundRow& row) {
  EventLog::Fields fields = {{"run", to_hex(cell.hash)}};
  if (log_.form() != LogForm::sentences && spdlog::should_log(spdlog::level::debug)) append_columns(fields, row);
  log_.debug("round", fields, "round " + std::to_string(row.round));
  const std::lock_guard lock(mutex_);
  status_.add(row, steady_seconds());
}

void ServeWatch::end(const RunRecord& record, bool is_stored) {
  EventLog::Fields fields;
  append_columns(fields, record);
  fields.emplace_back("message", record.message);
  fields.emplace_back("stored", is_stored);
  log_.info("run_ended", fields);
  const std::lock_guard lock(mutex_);
  status_.end(record, steady_seconds());
}

void ServeWatch::close(const std::string& outcome, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    is_over_ = true;
    status_.close({outcome, message}, steady_seconds());
  }
  ends_.notify_all();
  thread_.join();
  look();
  log_.info("ended", {{"outcome", outcome}, {"message", net::shortened(message)}});
  if (server_ != nullptr) server_->linger();
}

}  // namespace fl
