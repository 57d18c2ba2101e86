// `fedbits explain RUN`: the exact file that made a result.
//
// What is printed is itself a scenario file: the resolved scenario, every key of it, after comments that tell what the run came to, where
// it lies in its sweep, on which machine it was computed, and what its rules were resolved to. It can be run again.
#pragma once

#include <iosfwd>
#include <string>

#include "scenarios/results/run_store.hpp"

namespace fl {

// `prefix` is the beginning of a run's hash. StoreError when it names no run, or several; it lists the candidates.
void explain(const RunStore& store, const std::string& prefix, std::ostream& out);

void explain(const RunRecord& record, std::ostream& out);

}  // namespace fl
