#include "net/wire/frame_rules.hpp"

#include <string>

namespace fl::net {

namespace {

void require_most(const char* what, std::size_t size, std::size_t most) {
  if (size > most)
    throw ProtocolError(std::string(what) + " has a size of " + std::to_string(size) + "; at most " + std::to_string(most) +
                        " is accepted");
}

void check_hello(const wire::Hello& hello) {
  require_most("the list of clients of a hello", static_cast<std::size_t>(hello.clients_size()), kMostRanges);
  require_most("the name of a build", hello.build().size(), kMostBuildBytes);
  if (!hello.token().empty() && hello.token().size() != kTokenBytes)
    throw ProtocolError("the token of a hello has " + std::to_string(hello.token().size()) + " bytes instead of " +
                        std::to_string(kTokenBytes));
}

// Updates, memories and sums alone have payloads.
void check_payload(const wire::Header& header, std::size_t payload_bytes) {
  if (payload_bytes > 0 && !header.has_update() && !header.has_memory() && !header.has_partial_sums())
    throw ProtocolError("a frame has a payload of " + std::to_string(payload_bytes) + " bytes, and its kind has none");
}

}  // namespace

void check_frame_of_peer(const wire::Header& header, std::size_t payload_bytes) {
  switch (header.kind_case()) {
    case wire::Header::kHello: check_hello(header.hello()); break;
    case wire::Header::kNorms:
      if (header.norms().values_size() != kNumNorms) throw ProtocolError("the norms of a message are six numbers");
      break;
    case wire::Header::kGoodbye: require_most("the reason of a goodbye", header.goodbye().reason().size(), kMostReasonBytes); break;
    case wire::Header::kReady:
    case wire::Header::kUpdate:
    case wire::Header::kMemory:
    case wire::Header::kPartialSums:
    case wire::Header::kClosed:
    case wire::Header::kHeartbeat: break;
    default: throw ProtocolError("a frame that only a server sends");
  }
  check_payload(header, payload_bytes);
}

}  // namespace fl::net
