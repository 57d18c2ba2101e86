// Slots: everything that a method remembers between rounds, declared by name so that it can be sized, checkpointed and charged for. The
// owner of a slot says which side of the wall holds it, and so whose code can name it.
#pragma once

#include <cstddef>
#include <string>

namespace fl {

enum class SlotOwner {
  client,       // one vector per client [N,L], held by the clients (ClientState); moved only by acknowledged messages
  shared,       // one vector that server and clients hold alike, a replica in each process (SharedState)
  server,       // one vector in double that never leaves the server (ServerState)
  server_copy,  // one vector per client [N,L], held by the server (ServerState): what it keeps of each client's messages
};

// How a shared slot reaches the clients' replica, and so what it costs on the downlink.
enum class SlotSync {
  broadcast,           // Feedback::receive() moves it: sent to every member of the cohort when a round opens
  broadcast_at_close,  // Feedback::receive() moves it: sent to every member of the cohort when the round closes, before its state moves
  derived,             // Feedback::derive() moves it, on both sides; sent only to those who missed the round before
  last_model,          // w of the round before, which both sides copy; sent only to those who missed that round
  initial,             // fixed when the run starts: sent once, with the first model, whose bits count it
};

struct SlotSpec {
  std::string name;
  SlotOwner owner = SlotOwner::client;
  bool double_buffered = false;        // client slots only: the round writes new state beside the old, acknowledgement swaps the two
  SlotSync sync = SlotSync::derived;   // shared slots only
  bool derive_alone_reads_it = false;  // shared slots only: then nobody is sent it, as those who missed a round are sent what is derived
  std::size_t length = 0;              // 0 = P
};

}  // namespace fl
