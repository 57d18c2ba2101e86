// The facts that theory needs about a scenario before its first round.
#pragma once

#include "scenarios/data/catalog.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl {

struct StartFacts {
  double d = 0;                // parameters
  double gamma = 0;            // step size of round 1
  Unit unit = Unit::gradient;  // of what clients compress
  double zeta_sq = 0;          // mean |grad f_i - grad f|^2 at the initial model
};

// Reads the data and computes the gradient of all rows once. Throws ConfigError or DataError.
[[nodiscard]] FL_API StartFacts facts_at_start(const Cell& cell, const DataCatalog& catalog);

}  // namespace fl
