// Closed rounds that a peer has not acknowledged, in a checkpoint: a server that goes on sends them again, as it does within one process.
#pragma once

#include "fl_core/state/archive.hpp"
#include "net/server/roster.hpp"

namespace fl::net {

// Writes or reads them. Pieces of payloads that several frames share are written once. Throws ArchiveError for bytes that are none.
FL_API void persist(Archive& archive, std::vector<KeptRounds>& kept);

}  // namespace fl::net
