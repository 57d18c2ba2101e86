// Determines whether a GPU is available for tests.
#pragma once

#include "fl_core/memory/cuda/memory.hpp"

namespace fl::test {

inline bool no_gpu() { return cuda::device_count() == 0; }

// The message with which a test is skipped if there is no GPU.
inline constexpr const char* kGpuMissing = "GPU MISSING: no GPU is visible to the CUDA driver, so this has tested nothing";

}  // namespace fl::test
