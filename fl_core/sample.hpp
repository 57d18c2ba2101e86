// Which rows a stochastic gradient is taken at. A Sample names them without drawing: asking twice gives the same rows, so a method may
// evaluate several points on one sample (MARINA, SCAFFOLD option I, LSVRG).
#pragma once

#include <cstdint>

namespace fl {

struct Sample {
  enum class Kind { full, minibatch } kind = Kind::full;
  std::uint32_t round = 0;  // of the run
  std::uint32_t step = 0;   // local step
};

}  // namespace fl
