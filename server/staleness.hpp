// The weight of a message by its staleness tau: the server's steps between the model at which its client began and the present one.
//
//   constant    1
//   polynomial  (1 + tau)^-a
//   hinge       1 up to tau = b, and 1 / (a (tau - b) + 1) after it
// Source: C. Xie, S. Koyejo, I. Gupta, "Asynchronous federated optimization", OPT 2020, section 5.2.
#pragma once

#include <cmath>
#include <cstdint>

#include "fl_core/config/options.hpp"

namespace fl {

struct Staleness {
  enum class Kind { constant, polynomial, hinge } kind = Kind::constant;
  double exponent = 0;               // a of the polynomial; 0 = 0.5
  double slope = 0, tolerance = -1;  // a and b of the hinge; 0 = 10, -1 = 4

  [[nodiscard]] double weight(std::uint32_t tau) const {
    const double t = tau;
    if (kind == Kind::polynomial) return std::pow(1 + t, exponent > 0 ? -exponent : -0.5);
    if (kind == Kind::constant) return 1;
    const double a = slope > 0 ? slope : 10, b = tolerance >= 0 ? tolerance : 4;
    return t <= b ? 1 : 1 / (a * (t - b) + 1);
  }
};

inline void describe_staleness(Schema& schema, Staleness& staleness) {
  using Kind = Staleness::Kind;
  schema.choice("staleness", staleness.kind, {{Kind::constant, "constant"}, {Kind::polynomial, "polynomial"}, {Kind::hinge, "hinge"}},
                "weight of a message whose client began tau steps of the server ago: 1; (1 + tau)^-exponent; or 1 up to `tolerance` and "
                "1 / (slope (tau - tolerance) + 1) after it");
  schema.field("exponent", staleness.exponent, "for staleness = \"polynomial\"; 0 = 0.5").at_least(0).at_most(100);
  schema.field("slope", staleness.slope, "for staleness = \"hinge\"; 0 = 10").at_least(0).at_most(1e6);
  schema.field("tolerance", staleness.tolerance, "for staleness = \"hinge\"; -1 = 4").at_least(-1).at_most(1e9).unit("steps");
}

inline void validate_staleness(const Staleness& staleness, Problems& problems) {
  const auto idle = [&problems](const char* key, const char* kind) {
    problems.push_back({key, "has no effect unless staleness = \"" + std::string(kind) + "\""});
  };
  if (staleness.kind != Staleness::Kind::polynomial && staleness.exponent != 0) idle("exponent", "polynomial");
  if (staleness.kind == Staleness::Kind::hinge) return;
  if (staleness.slope != 0) idle("slope", "hinge");
  if (staleness.tolerance != -1) idle("tolerance", "hinge");
}

}  // namespace fl
