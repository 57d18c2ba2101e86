// Studies in which every client's gradients are finite but the first client's message is not: a number exceeds its wire format, or a norm
// or a rescaled value exceeds the run's precision. The other clients have none of the first client's features.
#pragma once

#include <string>
#include <vector>

#include "tests/support/scenario_text.hpp"

namespace fl::test {

struct Overflowing {
  std::string label, precision, up, feedback;
  std::string first;  // the only row of the first client
};

inline std::vector<Overflowing> overflowing() {
  // A gradient of 1e6 in one entry, or of 3.2e38 in four.
  const std::string six = "1e6 1:1\n", large = "1.6e38 5:2 6:2 7:2 8:2\n";
  return {
      {"fp16_values", "float64", "kind = 'top_k'\nk = 2\nvalue_format = 'fp16'", "kind = 'ef14'", six},
      {"fp16_of_ef21", "float64", "kind = 'top_k'\nk = 2\nvalue_format = 'fp16'", "kind = 'ef21'", six},
      {"fp16_of_all", "float32", "kind = 'identity'\nformat = 'fp16'", "kind = 'none'", six},
      {"fp32_values", "float64", "kind = 'top_k'\nk = 2\nvalue_format = 'fp32'", "kind = 'ef14'", "1e39 1:1\n"},
      {"bf16_values", "float32", "kind = 'top_k'\nk = 2\nvalue_format = 'bf16'", "kind = 'ef14'", "1.7e38 1:2\n"},
      {"norm", "float32", "kind = 'qsgd'\nlevels = 4", "kind = 'none'", large},
      {"norm_of_double", "float64", "kind = 'qsgd'\nlevels = 4", "kind = 'none'", "0.8e308 5:2 6:2 7:2 8:2\n"},
      {"rescaled", "float32", "kind = 'random_k'\nk = 1\nscaled = true", "kind = 'none'", "1.6e38 1:2 2:2 3:2 4:2 5:2 6:2 7:2 8:2\n"},
  };
}

// Returns the rows of four clients with one row each, for the file `rows`.
inline std::string rows_of(const Overflowing& study) { return study.first + "1.5 2:1 3:-1\n-0.5 2:2 4:1\n0.25 3:1 4:1\n"; }
inline std::string rows_without_first() { return "1.5 2:1 3:-1\n-0.5 2:2 4:1\n0.25 3:1 4:1\n"; }
inline std::string text_of(const Overflowing& study, const std::string& path, int clients = 4) {
  ScenarioText s;
  s.rounds = 4;
  s.precision = study.precision;
  s.data = "path = '" + path + "'\ntest = 'none'\nlabels = 'target'\nfeatures = 8";
  s.partition = "kind = 'contiguous'\nclients = " + std::to_string(clients);
  s.model = "kind = 'linear_regression'\nbias = false";
  s.local = "kind = 'gradient'\nlearning_rate = 0.1";
  s.up = study.up;
  s.feedback = study.feedback;
  s.evaluate = "every = 1\noptimum = false\ngradient = 'never'\ntrain_loss = false";
  return s.str();
}

}  // namespace fl::test
