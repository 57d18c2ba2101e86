// A run whose peers lose their connections, stay silent or are slow, as a test specifies.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/peer/hosted_clients.hpp"
#include "scenarios/experiment/server_data.hpp"
#include "tests/net/network_run.hpp"
#include "tests/net/raw_peer.hpp"

namespace fl::test {

// The fault of a peer at a frame of the server.
enum class Fault {
  none,
  cut_before,   // the connection ends, and the frame is lost
  cut_between,  // half of the answers are sent
  cut_after,    // all answers are sent
  mute,         // the answers are never sent
};

// Decides about a frame, from its header.
using Faults = std::function<Fault(const net::wire::Header&)>;
// Changes the header of an answer. Returns whether it did.
using Forgery = std::function<bool(net::wire::Header&)>;

// A peer that keeps its clients while its connection comes and goes.
class FaultyPeer {
 public:
  FaultyPeer(std::uint16_t port, std::string clients, Faults faults, const std::atomic<bool>& is_over)
      : port_(port), clients_text_(std::move(clients)), faults_(std::move(faults)), is_over_(is_over) {}

  std::chrono::milliseconds pause_before_reconnect{1};
  Forgery forge;

  // Plays until the run ends.
  void play() {
    while (!is_over_ && !is_done_) {
      try {
        converse();
      } catch (const boost::system::system_error&) {  // the connection has ended, or nobody listens yet
      }
      if (!is_done_) std::this_thread::sleep_for(pause_before_reconnect);
    }
  }
  [[nodiscard]] const std::string& goodbye() const { return goodbye_; }

 private:
  void converse() {
    RawPeer peer(port_);
    net::wire::Header hello = RawPeer::hello(clients_text_);
    hello.mutable_hello()->set_token(token_);
    peer.send(hello);
    place_ = 0;
    while (const std::optional<net::Frame> frame = peer.read()) {
      if (frame->header.has_heartbeat() || frame->header.has_refused()) continue;
      if (frame->header.has_goodbye()) goodbye_ = frame->header.goodbye().reason();
      is_done_ = frame->header.has_goodbye() || frame->header.has_run_end();
      if (is_done_) return;
      const Fault fault = faults_(frame->header);
      if (fault == Fault::cut_before) return peer.kill();
      const std::vector<net::OutgoingFrame> answers = answer(*frame);
      const std::size_t sent = fault == Fault::mute ? 0 : fault == Fault::cut_between ? answers.size() / 2 : answers.size();
      for (std::size_t i = 0; i < sent; ++i) send(peer, answers[i]);
      if (fault == Fault::cut_between || fault == Fault::cut_after) return peer.kill();
    }
  }

  void send(RawPeer& peer, const net::OutgoingFrame& frame) const {
    net::wire::Header header = net::parse_header(std::span(frame.head).subspan(net::kPrefixBytes));
    const bool is_forged = forge && forge(header);
    peer.write(is_forged ? net::make_frame(header, frame.payload).head : frame.head);
    for (const auto& piece : frame.payload) peer.write(*piece);
  }

  std::vector<net::OutgoingFrame> answer(const net::Frame& frame) {
    const net::wire::Header& header = frame.header;
    if (header.has_assignment()) return ready(frame);
    if (header.has_close()) return close(frame);
    if (header.has_measure_order()) return clients_->measure(frame);
    if (header.has_open()) place_ = 0;
    if (header.has_open()) is_replay_ = header.open().is_replay();
    std::vector<net::OutgoingFrame> answers = play(frame);
    if (is_replay_) answers.clear();
    return answers;
  }

  // The frames of an open round that come once more have the same answers.
  std::vector<net::OutgoingFrame> play(const net::Frame& frame) {
    if (frame.header.has_open() && frame.header.open().round() != open_round_) {
      open_round_ = frame.header.open().round();
      given_.clear();
      clients_->open(frame);
    } else if (place_ < given_.size()) {
      return given_[place_++];
    } else if (!clients_->learn_mean(frame)) {
      return keep({});
    }
    std::vector<net::OutgoingFrame> answers;
    clients_->exchange([&answers](std::vector<net::OutgoingFrame> block) { std::ranges::move(block, std::back_inserter(answers)); });
    return keep(std::move(answers));
  }

  std::vector<net::OutgoingFrame> close(const net::Frame& frame) {
    // A round that is closed here comes again where its memories were lost on the way.
    if (frame.header.close().round() != closed_) last_memories_ = clients_->close(frame);
    closed_ = frame.header.close().round();
    std::vector<net::OutgoingFrame> answers = last_memories_;
    answers.push_back(closed_frame());
    return answers;
  }

  std::vector<net::OutgoingFrame> keep(std::vector<net::OutgoingFrame> answers) {
    given_.push_back(std::move(answers));
    ++place_;
    return given_.back();
  }

  std::vector<net::OutgoingFrame> ready(const net::Frame& frame) {
    const net::wire::Assignment& assignment = frame.header.assignment();
    token_ = assignment.token();
    if (clients_ == nullptr) {
      const std::string text(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size());
      clients_ = net::host_clients(text, assignment.run(), net::parse_client_ranges(clients_text_), {});
    }
    net::wire::Header header;
    header.mutable_ready()->set_run(assignment.run());
    header.mutable_ready()->set_split(clients_->split_hash());
    header.mutable_ready()->set_closed_round(closed_);
    std::vector<net::OutgoingFrame> answers{net::make_frame(header)};
    if (assignment.closed_round() == closed_) answers.insert(answers.end(), last_memories_.begin(), last_memories_.end());
    return answers;
  }

  [[nodiscard]] net::OutgoingFrame closed_frame() const {
    net::wire::Header header;
    header.mutable_closed()->set_round(closed_);
    return net::make_frame(header);
  }

  std::uint16_t port_;
  std::string clients_text_;
  Faults faults_;
  const std::atomic<bool>& is_over_;
  std::unique_ptr<net::HostedClients> clients_;
  std::string token_, goodbye_;
  std::uint32_t closed_ = 0, open_round_ = 0;
  bool is_replay_ = false, is_done_ = false;
  std::vector<std::vector<net::OutgoingFrame>> given_;  // answers to the frames of the open round
  std::size_t place_ = 0;                               // of the next frame of the round
  std::vector<net::OutgoingFrame> last_memories_;       // that the last Close asked for
};

struct PresenceRun : NetworkRun {
  double longest_round_s = 0;
  std::int64_t heap_bytes_at_fifth = 0, heap_bytes_at_end = 0;  // in use after a fifth of the rounds, and after all
};

// A peer of a run: its clients, and its faults.
struct PeerPlan {
  std::string clients;
  Faults faults = [](const net::wire::Header&) { return Fault::none; };
  std::chrono::milliseconds pause_before_reconnect{1};
  Forgery forge = {};
};

// Plays the scenario with these peers. `also` runs in a thread of its own with the port of the server. With `known` the server has no
// training rows.
inline PresenceRun run_with_presence(const std::string& text, const net::Presence& presence, const std::vector<PeerPlan>& plans,
                                     const net::HubOptions& options = {}, const std::function<void(std::uint16_t)>& also = {},
                                     const ServerData* known = nullptr) {
  PresenceRun run;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  run.peer_errors.resize(plans.size());
  {
    net::PeerHub hub(options);
    for (std::size_t i = 0; i < plans.size(); ++i)
      threads.emplace_back([&, i, port = hub.port()] {
        FaultyPeer peer(port, plans[i].clients, plans[i].faults, is_over);
        peer.pause_before_reconnect = plans[i].pause_before_reconnect;
        peer.forge = plans[i].forge;
        try {
          peer.play();
          run.peer_errors[i] = peer.goodbye();
        } catch (const std::exception& error) {
          run.peer_errors[i] = error.what();
        }
      });
    if (also) threads.emplace_back([&also, port = hub.port()] { also(port); });
    net::RemoteSource clients(
        hub, [] { return true; }, presence);
    try {
      CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients, .server_data = known});
      const auto rounds = static_cast<std::uint64_t>(cell_of(text).scenario.rounds);
      auto last = std::chrono::steady_clock::now();
      run.result = runner.run(cell_of(text), [&](const RoundRow& row) {
        const auto now = std::chrono::steady_clock::now();
        if (row.round > 1) run.longest_round_s = std::max(run.longest_round_s, std::chrono::duration<double>(now - last).count());
        last = now;
        const auto heap = static_cast<std::int64_t>(mallinfo2().uordblks + mallinfo2().hblkhd);
        if (5 * row.round <= rounds) run.heap_bytes_at_fifth = heap;
        run.heap_bytes_at_end = heap;
        return true;
      });
    } catch (const std::exception& error) {
      run.error = error.what();
    }
    run.counts = hub.counts();
    run.traffic = clients.traffic();
    is_over = true;
  }
  for (std::thread& thread : threads) thread.join();
  return run;
}

}  // namespace fl::test
