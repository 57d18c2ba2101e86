// The machine a run is computed on: recorded with results, never part of them.
#pragma once

#include <string>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// Fills cpu, instruction_set, compiler and device.
void describe_machine(RunRecord& record, Device device);

// Bytes that are free on the GPU.
[[nodiscard]] std::uint64_t free_device_bytes();

// The device of a run. Throws DeviceError when `name` cannot be used here, ConfigError when there is no such name. "auto" is the
// GPU where there is one that every study can use: a GPU that cannot share managed memory with the host is used when "cuda" names it.
[[nodiscard]] Device choose_device(const std::string& name);

}  // namespace fl
