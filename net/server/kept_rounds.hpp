// Closed rounds that a peer has not acknowledged, and their form in a checkpoint: a server that goes on sends them again, as it does within
// one process.
#pragma once

#include <cstdint>
#include <vector>

#include "fl_core/state/archive.hpp"
#include "net/wire/client_ranges.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

// A round with clients of a session: the frames that its peer was sent, until it acknowledges them.
struct PlayedRound {
  std::uint32_t round = 0, before = 0;  // `before`: the previous round with clients of the session; 0 = none
  bool is_closed = false;
  std::uint64_t num_answers = 0;  // that were accepted
  std::vector<OutgoingFrame> frames;
};

// The closed rounds that the peer of these clients has not acknowledged, ascending.
struct KeptRounds {
  std::vector<ClientRange> clients;
  std::vector<PlayedRound> rounds;
};

// Writes or reads them. Pieces of payloads that several frames share are written once. Throws ArchiveError for bytes that are none.
FL_API void persist(Archive& archive, std::vector<KeptRounds>& kept);

}  // namespace fl::net
