// Events of a study, for those who show it. All is told in the thread that runs the study, in the order in which it happens, unless a
// function says otherwise. An exception of these functions ends the study.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/results/run_progress.hpp"

namespace fl {

struct Cell;
class Simulation;

enum class Note {
  warning,  // something that a user should know: a damaged store, less memory than asked for, a tuned value at the edge of its grid
  tuning,   // a line about the search for values, and one for each value that it found
  detail    // for those who look closely: which runs are not repeated, how long the parts of a round took
};

class FL_API StudyEvents {
 public:
  StudyEvents() = default;
  virtual ~StudyEvents() = default;
  StudyEvents(const StudyEvents&) = delete;
  StudyEvents& operator=(const StudyEvents&) = delete;

  // A sentence to read.
  virtual void note(Note, const std::string& /*text*/) {}
  // Work before a first round takes long: "the data are read (2 s)". Called from any thread.
  virtual void preparing(const std::string& /*text*/) {}

  // Values are tuned before the study runs. The runs of tuning come in batches: began(), reached() and ended() tell of a batch's own cells
  // until end_tuning(). `purpose` says what the batch looks for, `folder` has its store.
  virtual void tuning() {}
  virtual void begin_tuning(const std::string& /*purpose*/, const std::vector<Cell>&, const std::vector<std::size_t>& /*pending*/,
                            int /*workers*/, const std::string& /*folder*/) {}
  virtual void end_tuning() {}

  // The runs of the study begin: those of `pending`, this number at a time. The others are in the store, and stored() follows for each.
  virtual void begin(const Simulation&, const std::vector<std::size_t>& /*pending*/, int /*workers*/) {}
  virtual void stored(std::size_t /*cell*/, const RunRecord&) {}
  virtual void began(std::size_t /*cell*/, int /*worker*/) {}
  // Runs in turn tell every round, runs in parallel a few times a second.
  virtual void reached(std::size_t /*cell*/, const RunProgress&) {}
  // A run has ended and is stored.
  virtual void ended(std::size_t /*cell*/, const RunRecord&) {}
  // Comes a few times a second while runs are played in parallel.
  virtual void tick() {}
};

}  // namespace fl
