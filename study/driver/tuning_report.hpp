// Tuning, as a part of a study: its runs become events, and the values that it finds become sentences.
#pragma once

#include <string>
#include <vector>

#include "scenarios/sweep/tuning.hpp"
#include "study/driver/study_events.hpp"
#include "study/machine/machine_share.hpp"

namespace fl {

// Tunes the cells, with the tuning runs stored in OUT/tuning, and tells of them. With workers that are processes, call it before starting
// any thread.
FL_API void tune_study(std::vector<Cell>& cells, const std::string& out, const std::string& data, const MachineShare& share,
                       StudyEvents& events, const StopToken& stop);

}  // namespace fl
