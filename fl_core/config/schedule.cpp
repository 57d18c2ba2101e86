#include "fl_core/config/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fl {

double Schedule::factor(std::uint32_t round, std::uint32_t rounds) const {
  const auto r = static_cast<double>(round), W = static_cast<double>(warmup_rounds);
  if (r <= W) return r / W;
  const double t = r - 1 - W;
  if (kind == Kind::step) return std::pow(decay_factor, std::floor(t / static_cast<double>(decay_rounds)));
  if (kind == Kind::constant) return 1;
  const double span = std::max(static_cast<double>(rounds) - W, 1.0);
  return final_factor + (1 - final_factor) * (1 + std::cos(std::numbers::pi * std::min(t / span, 1.0))) / 2;
}

void describe(Schema& s, Schedule& o) {
  using Kind = Schedule::Kind;
  s.choice("schedule", o.kind, {{Kind::constant, "constant"}, {Kind::step, "step"}, {Kind::cosine, "cosine"}},
           "how gamma changes over the rounds, after the warm-up");
  s.field("warmup_rounds", o.warmup_rounds, "rounds in which gamma grows linearly from zero to its value")
      .at_least(0)
      .at_most(4294967295.0)
      .unit("rounds");
  s.field("decay_rounds", o.decay_rounds, "schedule step: rounds after which gamma is multiplied by decay_factor")
      .at_least(1)
      .at_most(4294967295.0)
      .unit("rounds");
  s.field("decay_factor", o.decay_factor, "schedule step: factor of gamma").above(0).at_most(1);
  s.field("final_factor", o.final_factor, "schedule cosine: final step size, as a fraction of gamma").at_least(0).at_most(1);
}

}  // namespace fl
