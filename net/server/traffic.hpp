// Bytes of payloads as the ledger counts them.
#pragma once

#include <cstdint>

namespace fl::net {

// Payload bytes of clients. A payload that is sent to several clients of a peer at once counts for each of them.
struct Traffic {
  std::uint64_t up_bytes = 0, down_bytes = 0;
  std::uint64_t measured_bytes = 0;  // upwards, for measures alone: nobody is charged for them
  std::uint64_t refused_bytes = 0;   // upwards, of messages that did not count
};

}  // namespace fl::net
