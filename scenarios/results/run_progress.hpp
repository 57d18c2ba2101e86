// The progress of a run.
#pragma once

#include <cstdint>

#include "scenarios/results/run_record.hpp"

namespace fl {

struct RunProgress {
  std::uint64_t round = 0;
  double train_loss = kNotMeasured, test_accuracy = kNotMeasured;  // measured last
  bool has_measured = false;
  RoundRow measured{};  // the round that was measured last
};

}  // namespace fl
