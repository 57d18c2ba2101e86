// What is measured of which round, as a scenario asks for it.
#pragma once

#include <cstdint>

#include "scenarios/scenario.hpp"

namespace fl {

// What is measured of a round.
struct DueMeasures {
  bool evaluation = false;  // losses and accuracy
  bool messages = false;    // norms and errors of the messages
  bool gradient = false;    // of all rows
  bool clients = false;     // accuracy on each client's own rows
  bool ranking = false;     // of items
  bool updates = false;     // how unlike they are
};

class MeasureSchedule {
 public:
  // The scenario outlives it.
  MeasureSchedule(const Scenario& scenario, bool model_starts_at_random)
      : scenario_(scenario), model_starts_at_random_(model_starts_at_random) {}

  [[nodiscard]] DueMeasures due(std::uint32_t round) const;
  // Every so many rounds, and in the last one; never where `every` is 0.
  [[nodiscard]] bool is_due(std::uint32_t round, std::int64_t every) const;
  [[nodiscard]] std::int64_t messages_every() const;
  [[nodiscard]] std::int64_t gradient_every() const;
  [[nodiscard]] EvaluateOptions::Gradient wants_gradient() const;

 private:
  const Scenario& scenario_;
  bool model_starts_at_random_;
};

}  // namespace fl
