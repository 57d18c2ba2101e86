// Describes the machine that computes a run. The description is recorded with results and is never part of them.
#pragma once

#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// Fills cpu, instruction_set, compiler and device.
FL_API void describe_machine(RunRecord& record, Device device);

// Returns the free bytes on the GPU.
[[nodiscard]] FL_API std::uint64_t free_device_bytes();

// Returns the device of a run. Throws DeviceError if `name` cannot be used here, ConfigError if no such name exists. "auto" selects a GPU
// that every study can use, if there is one. A GPU that cannot share managed memory with the host is used only if `name` is "cuda".
[[nodiscard]] FL_API Device choose_device(const std::string& name);

}  // namespace fl
