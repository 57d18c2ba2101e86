// A description of what was run, in words: the first thing that a reader of a report asks.
#pragma once

#include <string>
#include <vector>

#include "scenarios/analysis/study.hpp"

namespace fl {

struct StudySetup {
  struct Line {
    std::string name, text;
  };
  // A value that tuning or the matching of bits found for a method at a level.
  struct Found {
    std::size_t panel = 0, method = 0;
    std::string key, value;  // several values: the runs of the cell differ
    std::string remark;      // how it was found, in words
  };
  std::vector<Line> lines;    // data, clients, model, local work, ..., each with all values that the runs have
  std::vector<Line> methods;  // label, and the settings behind it
  std::vector<Found> found;
  std::string citation;  // a sentence that names the program and its version
};

// Describes the runs that have a place in the study.
[[nodiscard]] FL_API StudySetup setup_of(const Study& study);

// Returns a scenario file that plays the runs of the study again: the settings that all of them share, and its axes. Comments name what it
// cannot say: values that tuning found, and combinations that the study does not have.
[[nodiscard]] FL_API std::string common_scenario(const Study& study);

}  // namespace fl
