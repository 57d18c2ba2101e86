// Squared norms of one client's message, from which the measures of a round are computed.
#pragma once

#include <limits>

namespace fl {

// Squared norms of one client in one round, in the unit of the compressor's input.
struct ClientMeasures {
  double error = 0;              // |e_{r-1}|^2, before the round
  double input = 0;              // |input without memory|^2
  double compensated = 0;        // |p|^2
  double compression_error = 0;  // |C(p) - p|^2
};

// One message as its operator produced it, before the feedback processes it: |p|^2 and |C(p) - p|^2. NaN if the round has no such message
// or another operator made it (a dense one).
struct OperatorError {
  double input = std::numeric_limits<double>::quiet_NaN(), error = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace fl
