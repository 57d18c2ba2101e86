// `fedbits explain RUN`: prints the exact scenario file that produced a result.
//
// The output is a scenario file: the resolved scenario with every key, after comments that state the run's result, its place in its sweep,
// its machine and the resolved values of its rules. The file can be run again.
#pragma once

#include <iosfwd>
#include <string>

#include "scenarios/results/run_store.hpp"

namespace fl {

// Prints a run. `prefix` is the beginning of its hash. Throws StoreError, which lists candidates, if `prefix` does not match exactly one
// run.
void explain(const RunStore& store, const std::string& prefix, std::ostream& out);

void explain(const RunRecord& record, std::ostream& out);

}  // namespace fl
