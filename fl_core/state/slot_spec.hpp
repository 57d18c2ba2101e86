// Slots hold all state of a method between rounds. They are declared by name, so that they can be sized, checkpointed and charged. The
// owner of a slot decides which side holds it and which code can access it.
#pragma once

#include <cstddef>
#include <string>

namespace fl {

enum class SlotOwner {
  client,       // one vector per client [N,L], held by the clients (ClientState); only acknowledged messages change it
  shared,       // one vector that server and clients have in common, a replica in each process (SharedState)
  server,       // one vector in double that never leaves the server (ServerState)
  server_copy,  // one vector per client [N,L], held by the server (ServerState) and built from the client's messages
};

// The way in which a shared slot reaches the clients' replicas; it decides the slot's cost on the downlink.
enum class SlotSync {
  broadcast,           // Feedback::receive() changes it; sent to every member of the cohort when a round opens
  broadcast_at_close,  // Feedback::receive() changes it; sent to every member of the cohort when the round closes, before client state
                       // changes
  derived,             // Feedback::derive() changes it on both sides; sent only to clients that missed the previous round
  last_model,          // w of the previous round, which both sides copy; sent only to clients that missed that round
  initial,             // fixed when the run starts; sent once with the first model, whose bits include it
};

struct SlotSpec {
  std::string name;
  SlotOwner owner = SlotOwner::client;
  bool double_buffered = false;       // client slots only: the round writes new state beside the old one, and acknowledgement swaps the two
  SlotSync sync = SlotSync::derived;  // shared slots only
  bool derive_alone_reads_it =
      false;               // shared slots only: the slot is never sent, because clients that missed a round receive the derived slots
  std::size_t length = 0;  // 0 = P
};

}  // namespace fl
