// The machine a run is computed on: recorded with results, never part of them.
#pragma once

#include <string>

#include "server/run_record.hpp"

namespace fl {

// Fills cpu, instruction_set and compiler.
void describe_machine(RunRecord& record);

// Throws DeviceError when `device` cannot be used here, ConfigError when there is no such name. "auto" takes what there is.
void require_device(const std::string& device);

}  // namespace fl
