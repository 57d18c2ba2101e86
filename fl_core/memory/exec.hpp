// The device, the stream and the scratch memory of a computation. It is the first argument of every function that computes.
#pragma once

#include <cstddef>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl {

struct Exec {
  Device device = Device::cpu;
  void* stream = nullptr;          // cudaStream_t on a GPU
  Workspace* workspace = nullptr;  // scratch memory of this thread or stream, never shared between two
  int thread = 0;                  // CPU: index of the worker, 0-based
};

// Waits for the work of this stream only.
inline void synchronise(const Exec& exec) { synchronise(exec.device, exec.stream); }

}  // namespace fl
