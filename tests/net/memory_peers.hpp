// Peers without a network: their clients are in this process, and frames reach them as bytes, one after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/peer/hosted_clients.hpp"
#include "net/server/peers.hpp"

namespace fl::test {

class MemoryPeers final : public net::Peers {
 public:
  // One peer for each text of ids.
  explicit MemoryPeers(const std::vector<std::string>& hosted) {
    for (const std::string& ids : hosted) peers_.push_back({.ids = net::parse_client_ranges(ids), .clients = {}});
  }

  void set_run(const net::RunOffer* offer) override {
    for (Peer& peer : peers_) peer.clients.reset();
    last_.clear();
    if (offer == nullptr) return;
    const std::string text(reinterpret_cast<const char*>(offer->scenario->data()), offer->scenario->size());
    host_of_.assign(offer->num_clients, net::kNobody);
    last_.assign(offer->num_clients, 0);
    for (std::size_t p = 0; p < peers_.size(); ++p) {
      Peer& peer = peers_[p];
      peer.clients = net::host_clients(text, offer->run, peer.ids, {});
      if (peer.clients->split_hash() != offer->split) throw Error("the peers' rows are split in another way");
      for (const net::ClientRange& range : peer.ids)
        for (std::uint64_t client = range.first; client <= range.last; ++client) host_of_[client] = p + 1;
    }
  }

  net::Attendance wait_for_change(std::uint64_t, const std::function<bool()>& goes_on) override {
    if (!goes_on()) throw net::Interrupted();
    return {.num_changes = 1, .num_hosted = host_of_.size() - static_cast<std::size_t>(std::ranges::count(host_of_, net::kNobody))};
  }
  [[nodiscard]] std::vector<net::MissingClient> missing() const override {
    std::vector<net::MissingClient> missing;
    for (std::uint32_t client = 0; client < host_of_.size(); ++client)
      if (host_of_[client] == net::kNobody) missing.push_back({.client = client});
    return missing;
  }
  [[nodiscard]] std::vector<net::HostId> hosts_of(std::span<const std::uint32_t> clients) override {
    std::vector<net::HostId> hosts;
    for (const std::uint32_t client : clients) hosts.push_back(host_of_[client]);
    return hosts;
  }

  // The peer computes at once. Its answers arrive when they are collected.
  void send(net::Sending sending) override {
    ++num_sent_[sending.moment];
    const net::Frame frame = received(sending.frame);
    net::HostedClients& clients = *peers_.at(sending.host - 1).clients;
    const auto exchange = [&] { clients.exchange([this](std::vector<net::OutgoingFrame> block) { keep(std::move(block)); }); };
    if (sending.moment == net::Moment::opening) {
      clients.open(frame);
      exchange();
    } else if (sending.moment == net::Moment::within) {
      if (clients.learn_mean(frame)) exchange();
    } else if (sending.moment == net::Moment::closing) {
      for (const std::uint32_t client : sending.clients) last_[client] = sending.round;
      keep(clients.close(frame));
    } else {
      keep(clients.measure(frame));
    }
  }
  void expect(std::vector<net::Expected> frames, std::span<const std::uint8_t> required) override {
    answers_.expect(std::move(frames), required);
  }
  // Answers arrive in the reverse of the order in which they were computed.
  [[nodiscard]] net::Answers collect(const net::Wait&, const std::function<bool()>& goes_on) override {
    if (!goes_on()) throw net::Interrupted();
    std::ranges::reverse(sent_);
    for (const net::OutgoingFrame& one : std::exchange(sent_, {})) {
      net::Frame frame = received(one);
      const std::optional<net::Expected> what = net::answer_in(frame.header);
      if (!what || answers_.take(*what, std::move(frame)) != net::ExpectedAnswers::Verdict::accepted)
        throw Error("a peer sends what nobody waits for");
    }
    if (!answers_.is_over()) throw Error("an answer is missing");
    return answers_.finish();
  }
  void reject(std::uint32_t client, std::uint32_t, const std::string& why, net::Penalty) override {
    throw Error("an answer of client " + std::to_string(client) + " is rejected: " + why);
  }

  [[nodiscard]] net::ClosedRounds closed_rounds() const override { return {.last = last_, .kept = {}}; }
  [[nodiscard]] bool all_acknowledged(bool) const override { return true; }

  // Returns the number of frames of this kind that peers were sent.
  [[nodiscard]] std::uint64_t num_sent(net::Moment moment) const {
    const auto found = num_sent_.find(moment);
    return found == num_sent_.end() ? 0 : found->second;
  }

 private:
  struct Peer {
    std::vector<net::ClientRange> ids;
    std::unique_ptr<net::HostedClients> clients;  // of the run
  };

  // Returns the frame as a receiver reads it from bytes.
  [[nodiscard]] static net::Frame received(const net::OutgoingFrame& sent) {
    net::Bytes payload;
    for (const auto& piece : sent.payload) payload.insert(payload.end(), piece->begin(), piece->end());
    const auto header = std::span(sent.head).subspan(net::kPrefixBytes);
    net::check_frame(std::span(sent.head).first<net::kPrefixBytes>(), header, payload);
    return {.header = net::parse_header(header), .payload = net::ReceivedBytes(payload), .header_bytes = header.size()};
  }
  void keep(std::vector<net::OutgoingFrame> frames) { std::ranges::move(frames, std::back_inserter(sent_)); }

  std::vector<Peer> peers_;
  std::vector<net::HostId> host_of_;      // [N] place of the client's peer, from 1
  std::vector<std::uint32_t> last_;       // [N] last closed round of each client
  std::vector<net::OutgoingFrame> sent_;  // by peers, not collected yet
  net::ExpectedAnswers answers_;
  std::map<net::Moment, std::uint64_t> num_sent_;
};

}  // namespace fl::test
