// The elements that reach a threshold of their client and segment. Thresholds are corrected until about the wanted number reach them.
//
//   at most `rounds` times: n = #{|p_j| >= t};   n > (1 + tolerance) wanted: t <- (1 + tolerance) t;
//   n < (1 - tolerance) wanted: t <- (1 - tolerance) t;   else the segment has come to its end
// No t is above its segment's largest magnitude, nor so small that zeros reach it. All clients go together: a pass evaluates the input,
// leaves p in the state row, counts, and lists what is sent if the threshold stays, or marks it where that is more than a few of a tile
// (TileList); segments that have come to their end are not read again.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::cuda {

struct ThresholdSearch {
  std::span<const double> wanted;  // [S]
  double tolerance = 0;
  std::int64_t rounds = 0;
};

// threshold: [K,S] on the device, estimates that become what is used.
template <class T>
void send_reaching(const Exec& exec, const Affine<T>& input, const Scope& scope, const ThresholdSearch& search, T* threshold,
                   const StateWrite<T>& state, std::span<Payload<T>* const> out);

extern template void send_reaching<float>(const Exec&, const Affine<float>&, const Scope&, const ThresholdSearch&, float*,
                                          const StateWrite<float>&, std::span<Payload<float>* const>);
extern template void send_reaching<double>(const Exec&, const Affine<double>&, const Scope&, const ThresholdSearch&, double*,
                                           const StateWrite<double>&, std::span<Payload<double>* const>);

}  // namespace fl::cuda
