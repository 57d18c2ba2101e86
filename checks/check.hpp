// Checks are the requirements that every part of a role must meet. The property tests run them on all built-in parts, and `fedbits check`
// runs them on plug-ins.
//
//   compressors    well-formed messages, exact bits, state made from the decoded message, results that do not depend on blocks, and the
//                  claimed contract, on difficult inputs
//   models         the gradient is the derivative of the loss, and a block equals its clients one by one
//   partitioners   every row belongs to exactly one client, no client is empty, and equal seeds give equal splits
//   postprocessors no vector is longer than the limit that it states, finite numbers stay finite, and blocks do not matter
//   optimizers     local optimizers: numbers stay finite, gradients of zero move nothing, and results do not depend on blocks or threads
//   deliveries     only messages that have arrived count, rounds close, and arrivals one by one lead to the decision of all at once
//   devices, networks, availabilities
//                  rates are above 0, times of changes are true, and answers depend on the client and the time alone
//   measures       columns fit into a table, values depend on the run alone, and the run does not depend on the measures
// Other roles have no checks. A part that crashes ends the process; an exception that it throws is a finding.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checks/findings.hpp"
#include "fl_core/config/device.hpp"

namespace fl::checks {

struct Check {
  std::string name;     // short, for --only: "bits"
  std::string promise;  // the requirement, as a sentence
  void (*run)(const std::string& part, Findings& findings);
};

[[nodiscard]] const std::vector<Check>& compressor_checks();
[[nodiscard]] const std::vector<Check>& contract_checks();  // of compressors
[[nodiscard]] const std::vector<Check>& model_checks();
[[nodiscard]] const std::vector<Check>& partitioner_checks();
[[nodiscard]] const std::vector<Check>& delivery_checks();
[[nodiscard]] const std::vector<Check>& device_checks();
[[nodiscard]] const std::vector<Check>& network_checks();
[[nodiscard]] const std::vector<Check>& availability_checks();
[[nodiscard]] const std::vector<Check>& measure_checks();
[[nodiscard]] const std::vector<Check>& postprocessor_checks();
[[nodiscard]] const std::vector<Check>& optimizer_checks();  // of local optimizers

// Returns the checks of a role, or an empty list if the role has no checks.
[[nodiscard]] FL_API std::vector<Check> checks_of(const std::string& role);

// Rows of the form that a model is made for.
struct RowForm {
  std::vector<std::size_t> shape;  // of a row
  std::size_t num_classes = 0;     // 0: the labels are targets
  std::size_t vocabulary = 0;      // features are whole numbers below it; 0: they are real
};
// Lets the checks run a plug-in model on rows of this form, instead of trying which of theirs it takes. Their data set is named kOwnRows.
FL_API void check_model_on(const std::string& model, RowForm rows);
inline constexpr const char* kOwnRows = "rows of its own shape";

}  // namespace fl::checks
