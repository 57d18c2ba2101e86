// Rules for a frame of a peer that do not depend on the state of a session: which kinds a peer may send, and the sizes of their fields.
// The server checks them before anything else, so that the code behind meets no other frames.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/wire/frame.hpp"

namespace fl::net {

inline constexpr std::size_t kMostHelloBytes = 1 << 16;   // header of a peer that is not ready
inline constexpr std::size_t kMostAnswerBytes = 1 << 12;  // header of a peer that is ready
inline constexpr int kMostRanges = 4096;                  // of clients in a hello
inline constexpr std::size_t kMostReasonBytes = 1024;     // text of a goodbye
inline constexpr std::size_t kMostBuildBytes = 1024;      // name of a build
inline constexpr std::size_t kTokenBytes = 16;
inline constexpr int kNumNorms = 6;  // of one message

// Returns the limits for the next frame of a peer. Before the peer is ready it has no reason to send a payload; then a payload has at most
// `most_message` bytes.
[[nodiscard]] inline FrameLimits limits_of_peer(bool is_ready, std::uint64_t most_message) {
  return is_ready ? FrameLimits(most_message, kMostAnswerBytes) : FrameLimits(0, kMostHelloBytes);
}

// Throws ProtocolError if a peer may not send this frame.
FL_API void check_frame_of_peer(const wire::Header& header, std::size_t payload_bytes);

}  // namespace fl::net
