// Checks: what every part of a role must do, whatever it is called. The property tests run them on all that is built in, and `fedbits
// check` on what someone plugs in.
//
//   compressors    well-formed messages, exact bits, state made from the decoded message, answers that do not depend on blocks, and the
//                  contract that is claimed, on inputs that are chosen to hurt
//   models         the gradient is the derivative of the loss, a block is its clients one by one
//   partitioners   every row to exactly one client, none empty, the same split for the same seed
//   measures       columns that a table can hold, values that depend on the run alone, and a run that does not depend on them
// Other roles have none. A part that crashes takes the process with it; what it throws is a finding.
#pragma once

#include <string>
#include <vector>

#include "checks/findings.hpp"
#include "fl_core/config/device.hpp"

namespace fl::checks {

struct Check {
  std::string name;     // short, for --only: "bits"
  std::string promise;  // what must hold, as a sentence
  void (*run)(const std::string& part, Findings& findings);
};

[[nodiscard]] const std::vector<Check>& compressor_checks();
[[nodiscard]] const std::vector<Check>& contract_checks();  // of compressors
[[nodiscard]] const std::vector<Check>& model_checks();
[[nodiscard]] const std::vector<Check>& partitioner_checks();
[[nodiscard]] const std::vector<Check>& measure_checks();

// The checks of a role, none where there are none.
[[nodiscard]] FL_API std::vector<Check> checks_of(const std::string& role);

}  // namespace fl::checks
