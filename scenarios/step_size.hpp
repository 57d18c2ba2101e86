// Step sizes that theory prescribes, for learning_rate = "theory".
#pragma once

#include <map>
#include <string>

#include "compressors/compressor.hpp"

namespace fl {

// The largest step size for which the method's own theorem holds, from L, L_max, l2, n and the operator's contract.
//   none        1/(L+l2) with an exact operator; 1/((L+l2)(1+omega/n)) with an unbiased one
//   ef14, momentum_correction   1/(4(L+l2))                      (Theorem 4 of Sahu et al. 2021, M = 0)
//   ef21        1/(L + L_max sqrt(beta/theta)), theta = 1-sqrt(1-delta), beta = (1-delta)/theta
//   diana       1/((L+l2)(1+6 omega/n));  marina 1/((L+l2)(1+sqrt((1-p)omega/(p n)))) with p = 1/(1+omega);  others 1/(4(L+l2))
// Throws ConfigError where the operator lacks the contract that the theorem needs.
[[nodiscard]] double theory_step_size(const std::string& feedback, const Contract& contract, const std::map<std::string, double>& names);

}  // namespace fl
