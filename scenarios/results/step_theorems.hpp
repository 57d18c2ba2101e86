// The sentences about step sizes that come from theorems: learning_rate = "theory" or "tight".
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// The theorems of a study's step sizes, and the classes of operators that take them.
class FL_API StepTheorems {
 public:
  void add(const std::string& theorem, bool is_absolute, bool is_contraction);
  // Returns a sentence that names the theorems, and one that warns if absolute and contraction operators are compared at such steps.
  [[nodiscard]] std::vector<std::string> sentences() const;

 private:
  std::vector<std::string> theorems_;  // distinct
  bool has_absolute_ = false, has_contraction_ = false;
};

// Returns the same of stored runs. Only the tight step is known by its name there; a stored run of "theory" names no theorem.
[[nodiscard]] FL_API StepTheorems step_theorems_of(const std::vector<RunRecord>& records);

}  // namespace fl
