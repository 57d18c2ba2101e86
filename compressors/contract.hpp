// What an operator promises about its error, and for which inputs.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

// Magnitudes: 0, or least .. most.
struct MagnitudeRange {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool below = false;  // `most` itself is outside

  [[nodiscard]] bool is_bounded() const { return most < std::numeric_limits<double>::infinity(); }
  [[nodiscard]] bool is_everything() const { return least == 0 && !is_bounded(); }
  [[nodiscard]] bool holds(double magnitude) const {
    return magnitude == 0 || (magnitude >= least && (below ? magnitude < most : magnitude <= most));
  }
};

// The inputs for which the claims of a contract hold: every condition that is named does. Without any they hold for all vectors of normal
// and denormal numbers. `fedbits check` makes its inputs from it, up to the bounds.
struct Domain {
  MagnitudeRange entries{};         // |x_j| of every entry
  MagnitudeRange sent{};            // |x_j| of entries that are sent
  MagnitudeRange largest{};         // max_j |x_j| of every segment
  MagnitudeRange norm{};            // |x| of every segment
  std::vector<Domain> remainder{};  // of x - C(x), of an operator around operators
  bool up_to_rounding = false;      // the claims hold but for rounding errors of the computation
  bool at_step_size_one = false;    // kappa is another one at other step sizes (Compressor::kappa_at)
  std::string unbiased_up_to = "";  // what keeps an operator with an omega from being unbiased exactly: "clipping"; "" = nothing

  // Whether the claims hold for every input, at step size 1 at least.
  [[nodiscard]] FL_API bool is_everywhere() const;
};

// Returns the domain in words, "" for one that is everywhere.
[[nodiscard]] FL_API std::string to_string(const Domain& domain);
// Returns the inputs that are in both.
[[nodiscard]] FL_API Domain in_both(const Domain& a, const Domain& b);

// What an operator promises about E|C(x)-x|^2. Each claim holds for the scope it was asked for.
struct Contract {
  enum class Holds { pointwise, in_expectation };
  std::optional<double> kappa;  // absolute:     |C(x)-x|^2 <= kappa^2, in units of the input
  std::optional<double> delta;  // contraction:  |C(x)-x|^2 <= (1-delta) |x|^2
  std::optional<double> omega;  // unbiased:     E C(x) = x and E|C(x)-x|^2 <= omega |x|^2
  Holds kappa_holds = Holds::pointwise;
  Holds delta_holds = Holds::pointwise;
  Domain domain;          // where the claims hold
  bool linear = false;    // C(x)+C(y) = C(x+y) given the shared state: messages may be summed before decoding
  std::string no_memory;  // why no feedback may keep x - C(x), and what to do instead; "" = it may
};

}  // namespace fl
