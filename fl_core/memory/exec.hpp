// Where and with which scratch memory something is executed. Passed first to everything that computes.
#pragma once

#include <cstddef>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl {

struct Exec {
  Device device = Device::cpu;
  void* stream = nullptr;          // cudaStream_t on a GPU
  Workspace* workspace = nullptr;  // scratch of this thread or stream; never shared between two
  int thread = 0;                  // CPU: which worker, 0-based
};

// Waits for what was given to its stream, and to no other.
inline void synchronise(const Exec& exec) { synchronise(exec.device, exec.stream); }

}  // namespace fl
