// Contracts: the bounds that an operator promises for its error, the inputs for which they hold, and the cost that it states.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/round/stated_cost.hpp"

namespace fl {

// A range of magnitudes: 0, or least .. most.
struct MagnitudeRange {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool below = false;  // whether `most` itself is excluded

  [[nodiscard]] bool is_bounded() const { return most < std::numeric_limits<double>::infinity(); }
  [[nodiscard]] bool is_everything() const { return least == 0 && !is_bounded(); }
  [[nodiscard]] bool holds(double magnitude) const {
    return magnitude == 0 || (magnitude >= least && (below ? magnitude < most : magnitude <= most));
  }
};

// The inputs for which the claims of a contract hold. An input must satisfy every condition that is set. Without conditions the claims hold
// for all vectors of normal and denormal numbers. `fedbits check` generates its inputs from the domain, up to the bounds.
struct Domain {
  MagnitudeRange entries{};         // |x_j| of every entry
  MagnitudeRange sent{};            // |x_j| of entries that are sent
  MagnitudeRange largest{};         // max_j |x_j| of every segment
  MagnitudeRange norm{};            // |x| of every segment
  std::vector<Domain> remainder{};  // domain of x - C(x), for an operator that contains other operators
  bool up_to_rounding = false;      // the claims hold up to rounding errors of the computation
  // The operator follows a step size, and kappa is another at others (Compressor::kappa_at): that of a step, which only inputs of unit
  // "step" contain; or, for unit "update", that of a local step, or that of all local steps together.
  bool follows_step = false, follows_local_step = false, follows_local_total = false;
  std::string unbiased_up_to = "";  // why an operator with an omega is not exactly unbiased: "clipping"; "" = it is

  // Returns whether kappa holds at step size 1 alone.
  [[nodiscard]] bool at_step_size_one() const { return follows_step || follows_local_step || follows_local_total; }
  // Returns whether the claims hold for every input, at least at step size 1.
  [[nodiscard]] FL_API bool is_everywhere() const;
};

// Returns the domain in words, or "" if it contains all inputs.
[[nodiscard]] FL_API std::string to_string(const Domain& domain);
// Returns the intersection of two domains.
[[nodiscard]] FL_API Domain in_both(const Domain& a, const Domain& b);

// Bounds on E|C(x)-x|^2 that an operator promises. Each claim holds for the scope that was passed to contract().
struct Contract {
  enum class Holds { pointwise, in_expectation };
  std::optional<double> kappa;  // absolute:     |C(x)-x|^2 <= kappa^2, in units of the input
  std::optional<double> delta;  // contraction:  |C(x)-x|^2 <= (1-delta) |x|^2
  std::optional<double> omega;  // unbiased:     E C(x) = x and E|C(x)-x|^2 <= omega |x|^2
  Holds kappa_holds = Holds::pointwise;
  Holds delta_holds = Holds::pointwise;
  Domain domain;                   // inputs for which the claims hold
  bool errors_are_shared = false;  // the clients' errors in a round are drawn together, so that their mean is not smaller than one of them
  bool errors_are_dealt = false;   // each entry comes from clients that are drawn together: E|sum_i w_i (C(x_i) - x_i)|^2 is at most
                                   // (omega + 1) max_i w_i sum_i w_i |x_i|^2, though the clients' errors are not independent
  bool linear = false;             // C(x)+C(y) = C(x+y) given the shared state: messages may be summed before decoding
  std::string no_memory;           // why feedback must not keep x - C(x), and the alternative; "" = feedback may keep it
  // The cost of compress() per entry of the scope, in all phases together, beyond the terms of the affine input and the written state,
  // which the feedback states. No value: not stated.
  std::optional<EntryCost> cost;
};

}  // namespace fl
