// Determines which keys are tuned, namely those that the parts of each combination have, and at which budget candidates are compared.
//
// Unless at = "rounds" is written, candidates are compared at equal uplink bits, as the report judges methods: the budget is what the
// baseline sends in the scenario's rounds. That needs an axis of methods, a baseline in every panel, and step sizes that do not depend on
// the number of rounds; a sweep without these is tuned at equal rounds.
#pragma once

#include <vector>

#include "scenarios/file/sweep.hpp"
#include "scenarios/file/sweep_reader.hpp"

namespace fl {

// Sets what `sweep` leaves to tuning in its cells. Adds problems: a key that no method has, a value that it does not take, a budget that
// nobody sends, a measure that is not measured or too rarely for an end point.
void set_tuning(std::vector<Cell>& cells, const Sweep& sweep, ProblemList& problems);

// Returns the evaluations in the last fifth of `rounds` when every `every`-th round is evaluated, and the last one.
[[nodiscard]] FL_API std::int64_t evaluations_at_end(std::int64_t rounds, std::int64_t every);

}  // namespace fl
