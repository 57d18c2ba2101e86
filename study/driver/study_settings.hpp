// The settings of a study: its scenario, where its results go, and which part of this machine it may use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/experiment/model_file.hpp"
#include "scenarios/file/scenario_text.hpp"
#include "scenarios/sweep/sweep_share.hpp"

namespace fl {

// When checkpoints are written, and whether runs go on from them.
struct CheckpointSettings {
  std::uint64_t rounds = 0;  // written every N rounds; 0 = never
  double minutes = 5;        // written every N minutes; 0 = never
  bool resume = false;       // finished runs are kept, begun ones continue from their checkpoints
  bool any_build = false;    // checkpoints of another build are taken too
};

// Runs are played one after another, each with all threads; small ones are played ahead of their turn. Results do not depend on it. Runs
// that a store has are shown and not repeated.
struct PlayInTurn {
  int threads = 0;           // 0 = the cores that this process may use
  std::uint32_t block = 0;   // clients computed together; 0 = chosen
  bool materialise = false;  // encodes and decodes every message instead of computing its length
  std::string samples{};     // folder for the rows of every minibatch, as HASH.csv; "" = not written
  bool tells_times = false;  // StudyEvents::detail() hears how long the parts of a round took
};

// Several runs are played at a time. Results do not depend on it. A folder that has a part of the runs is refused unless they are to be
// resumed or repeated. The folder is locked while they are played.
struct PlayInParallel {
  int jobs = 0;                       // runs at a time; 0 = as many as the cores allow
  int threads = 1;                    // of each run
  std::string memory{};               // for all runs together, as "8G"; fewer run at a time if it is short; "" = what is available
  std::optional<SweepShard> shard{};  // runs only this part, into OUT/shard-I-of-N
};

struct StudySettings {
  std::string file{};                   // the scenario
  std::optional<ScenarioText> text{};   // a scenario in the place of the file
  std::vector<std::string> settings{};  // changes of its keys, as "partition.alpha=0.1"
  std::vector<std::string> plugins{};   // files
  std::string out{};                    // folder of the results; "" = fedbits-out/NAME
  std::string data{};                   // folder of data sets; "" = FEDBITS_DATA, ./data, the embedded set
  std::string device = "cpu";           // cpu, cuda or auto
  std::string state_memory{};           // bound on the memory for the clients' state of a run, as "2G"; "" = none
  std::string state_folder{};           // for state beyond it; "" = OUT/checkpoints
  Workers workers = Workers::threads;   // a program without threads of its own may take processes
  ModelOutput models{};                 // where final models are written
  bool again = false;                   // repeats runs that are stored
  CheckpointSettings checkpoints{};
  std::variant<PlayInTurn, PlayInParallel> play{};
};

}  // namespace fl
