// Which convergence theorems speak of a run: the assumptions that its parts have to satisfy, and the constants of the theorems for its
// record. What the theorems say is in scenarios/analysis/bounds.hpp.
#pragma once

#include <string>
#include <vector>

#include "clients/local_update.hpp"
#include "compressors/compressor.hpp"
#include "compressors/exchange.hpp"
#include "scenarios/scenario.hpp"
#include "server/run_record.hpp"

namespace fl {

// What theorems ask of the parts of a run beside its numbers.
template <class T>
struct TheoryParts {
  const Scenario& scenario;
  const LocalUpdate<T>& local;
  const ExchangeChannel<T>& up;
  std::size_t num_channels = 1;
  Unit unit = Unit::gradient;
  double step_size = 0;
};

// Whether a theorem's assumptions hold, its numbers and step size left aside: error feedback (or nothing to feed back), full gradients,
// full participation, an exact downlink, plain steps of the server, a compressor that is absolute or a contraction everywhere.
template <class T>
[[nodiscard]] bool has_theory(const TheoryParts<T>& parts);

// The constants "theorem", "theorem_L" and "theorem_kappa" or "theorem_delta", for the record of a run; none where gamma is too large.
// `smoothness` is that of every f_i.
template <class T>
[[nodiscard]] std::vector<ResolvedConstant> theory_constants(const TheoryParts<T>& parts, double smoothness);

// The same of theorems 4 and 5, for convex f_i: "average_theorem", "average_L", "average_kappa", "average_mu" and "average_R0_sq". `mu` is
// the strong convexity of every f_i, `distance_sq` that of x_0 from x*. None for a contraction: those theorems have no such term.
template <class T>
[[nodiscard]] std::vector<ResolvedConstant> convex_theory_constants(const TheoryParts<T>& parts, double smoothness, double mu,
                                                                    double distance_sq);

}  // namespace fl
