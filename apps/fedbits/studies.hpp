// The studies behind `fedbits run` and `fedbits sweep`, for callers that have their own way to stop them and to show their progress.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/fedbits/json_log.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/study_watch.hpp"

namespace fl {

struct RunArguments : StudyArguments {
  std::string samples;
  int threads = 0;  // 0 = the cores that this process may use
  std::uint32_t block = 0;
  bool materialise = false;
};

struct SweepArguments : StudyArguments {
  std::optional<std::string> shard;
  std::string memory;
  int jobs = 0, threads = 1;  // jobs = 0: as many as the cores allow
  bool list = false;
};

// Run and store the cells of a scenario, and return the exit code of the command. A study stops when caught_signal() is not 0.
int run_study(RunArguments arguments, JsonLog& log, StudyWatch& watch);
int sweep_study(SweepArguments arguments, JsonLog& log, StudyWatch& watch);

}  // namespace fl
