#include "scenarios/file/measure_schedule.hpp"

namespace fl {

bool MeasureSchedule::is_due(std::uint32_t round, std::int64_t every) const {
  return every > 0 && (round % static_cast<std::uint32_t>(every) == 0 || round == scenario_.rounds);
}

std::int64_t MeasureSchedule::messages_every() const {
  if (scenario_.is_asynchronous()) return 0;  // the messages of a step were made at different times
  return scenario_.evaluate.measure_every > 0 ? scenario_.evaluate.measure_every : scenario_.evaluate.every;
}

std::int64_t MeasureSchedule::gradient_every() const {
  return scenario_.evaluate.gradient_every > 0 ? scenario_.evaluate.gradient_every : scenario_.evaluate.every;
}

EvaluateOptions::Gradient MeasureSchedule::wants_gradient() const {
  using Gradient = EvaluateOptions::Gradient;
  if (scenario_.stop.grad_norm_sq) return Gradient::every;
  if (scenario_.evaluate.gradient != Gradient::automatic) return scenario_.evaluate.gradient;
  return model_starts_at_random_ ? Gradient::start : Gradient::every;
}

}  // namespace fl
