// A peer's part of the runs of a server: its clients, and their state on disk, whatever connection brings the frames.
//
// The clients' state moves when a round closes. A round that was begun and is sent again is continued if it is the same; if it is another
// one, the clients go back to the last closed round. So they do where the server goes back to its last checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/peer/hosted_clients.hpp"
#include "net/peer/peer_journal.hpp"

namespace fl::net {

// Where and how the state of clients is kept.
struct StateOptions {
  std::filesystem::path folder;  // must exist
  FileSystem* system = &FileSystem::real();
  std::uint64_t long_bytes = kLongJournalBytes;  // the size of records after which a snapshot replaces them
};

class FL_API PeerRun {
 public:
  // `say` is told what a user may want to know. Throws StoreError for a folder of other clients.
  PeerRun(std::vector<ClientRange> clients, HostOptions machine, StateOptions state, std::function<void(const std::string&)> say);
  ~PeerRun();

  // Begins a run or goes on with one: brings the clients to the round that the server names, or as near as their state allows. Returns the
  // answer. Throws ProtocolError, StoreError for a folder that cannot be used, and what host_clients() throws.
  [[nodiscard]] OutgoingFrame begin(const wire::Assignment& assignment, std::span<const std::byte> scenario);
  // Takes a frame of a round and sends the answers, from any thread, while the clients compute. Throws ProtocolError for a frame that does
  // not fit, StoreError if the state cannot be written: the clients then stay at the round before, on disk.
  void take(Frame frame, const FrameSink& send);
  // Ends the run; its state stays until remove() or until another run begins, because the server may still go back.
  void end();
  // Removes the state of all runs that were begun here, which the server does not need any more.
  void remove();

  [[nodiscard]] bool is_playing() const { return clients_ != nullptr; }
  [[nodiscard]] std::uint64_t run() const { return run_; }
  [[nodiscard]] std::uint32_t closed_round() const { return closed_; }
  // Returns what explains a server's refusal of these clients, or "".
  [[nodiscard]] const std::string& mismatch() const { return mismatch_; }

 private:
  // The round that is open here.
  struct Opened {
    std::uint32_t round = 0;  // 0 = none
    bool is_replay = false;
    double seconds = 0;  // of computing
    std::vector<Frame> frames{};
    std::vector<OutgoingFrame> sent{};
  };
  void require_rows(const wire::Assignment& assignment) const;
  void open_journal();
  void restore(std::uint32_t round);
  [[nodiscard]] bool load(JournalSnapshot snapshot);
  void open(Frame frame, const FrameSink& send);
  void learn(Frame frame, const FrameSink& send);
  void exchange(const FrameSink& send);
  void close(Frame frame);
  [[nodiscard]] std::vector<OutgoingFrame> closed_frames() const;
  void compact(std::uint32_t saved);

  const std::vector<ClientRange> ranges_;
  HostOptions machine_;
  const StateOptions state_;
  const std::function<void(const std::string&)> say_;
  std::uint64_t run_ = 0;
  std::string scenario_;
  std::unique_ptr<PeerJournal> journal_;
  std::vector<std::unique_ptr<PeerJournal>> earlier_;  // of runs before this one
  bool has_ended_ = false;
  std::unique_ptr<HostedClients> clients_;
  std::uint32_t closed_ = 0;
  Opened opened_;
  std::vector<OutgoingFrame> memories_;  // that the last closed round asked for
  std::string mismatch_;
};

}  // namespace fl::net
