// The intervals at which a scenario asks for losses, norms of messages and gradients.
#pragma once

#include <cstdint>

#include "scenarios/file/scenario.hpp"

namespace fl {

class MeasureSchedule {
 public:
  // The scenario outlives it.
  MeasureSchedule(const Scenario& scenario, bool model_starts_at_random)
      : scenario_(scenario), model_starts_at_random_(model_starts_at_random) {}

  // Returns whether a measure of this period is due: in the rounds that `every` divides and in the last one; never if `every` is 0.
  [[nodiscard]] bool is_due(std::uint32_t round, std::int64_t every) const;
  [[nodiscard]] std::int64_t messages_every() const;
  [[nodiscard]] std::int64_t gradient_every() const;
  [[nodiscard]] EvaluateOptions::Gradient wants_gradient() const;

 private:
  const Scenario& scenario_;
  bool model_starts_at_random_;
};

}  // namespace fl
