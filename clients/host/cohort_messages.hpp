// Everything that a cohort sends in one round, and what is known of it besides: the memory of the round's messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/round/cohort_runner.hpp"

namespace fl {

template <class T>
struct CohortMessages {
  struct Channel {
    std::vector<Payload<T>> payloads;   // [M]
    std::vector<Payload<T>*> pointers;  // [M]
    bool takes_part = true;             // in this round
    bool is_active = true;              // in the current phase
  };

  // For cohorts of up to max_cohort, with payloads and own values in these memories.
  CohortMessages(std::size_t num_channels, std::size_t max_cohort, Device of_payloads, Device of_own)
      : channels(num_channels),
        messages(max_cohort),
        encoded(max_cohort),
        has_own(max_cohort),
        has_averaged(max_cohort),
        refused(max_cohort),
        work(max_cohort, 1.0),
        own(0, of_own) {
    for (Channel& channel : channels) {
      channel.payloads = std::vector<Payload<T>>(max_cohort);
      for (Payload<T>& payload : channel.payloads) {
        payload.place_on(of_payloads);
        channel.pointers.push_back(&payload);
      }
    }
  }

  std::vector<Channel> channels;
  std::vector<ClientMessage<T>> messages;                        // [M] of the phase that was written last
  std::vector<std::shared_ptr<std::vector<std::byte>>> encoded;  // [M] if messages are encoded; null before a client's first one
  std::vector<std::uint8_t> has_own;                             // [M] the client's work produced own values, which it may keep
  std::vector<std::uint8_t> has_averaged;                        // [M] its message holds the averaged ones
  std::vector<std::uint8_t> refused;                             // [M] the client sends nothing in this round
  std::vector<double> work;                                      // [M]
  Buffer<T> own;                                                 // [M,U] values of ParameterKinds::unshared after the clients' work
  std::size_t num_own = 0, num_averaged = 0;                     // U, A
};

}  // namespace fl
