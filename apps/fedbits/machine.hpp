// The machine a run is computed on: recorded with results, never part of them.
#pragma once

#include <string>

#include "fl_core/device.hpp"
#include "server/run_record.hpp"

namespace fl {

// Fills cpu, instruction_set and compiler.
void describe_machine(RunRecord& record);

// The device of a run. Throws DeviceError when `name` cannot be used here, ConfigError when there is no such name. "auto" is the CPU as
// long as no measurement on a GPU says better.
[[nodiscard]] Device choose_device(const std::string& name);

}  // namespace fl
