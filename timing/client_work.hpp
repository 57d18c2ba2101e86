// The work of the clients and of the server in a round, from the costs that their parts state.
#pragma once

#include <cstdint>

#include "fl_core/round/stated_cost.hpp"

namespace fl {

class ClientWork {
 public:
  virtual ~ClientWork() = default;
  // Returns a client's local work in a round: gradients, steps, whatever comes before its vectors are there.
  [[nodiscard]] virtual Work local(std::uint32_t client, std::uint32_t round) const = 0;
  // Returns its work for a message of a phase, whose length is in bits: postprocessor, feedback, operators, code.
  [[nodiscard]] virtual Work message(int phase, double bits) const = 0;
  // Returns its work for reading a model or a mean of that many bits.
  [[nodiscard]] virtual Work reading(double bits) const = 0;
  // Returns the server's work for a phase with this many messages and bits in all, and for its step.
  [[nodiscard]] virtual Work aggregation(int phase, std::size_t messages, double bits) const = 0;
  [[nodiscard]] virtual Work step() const = 0;
};

}  // namespace fl
