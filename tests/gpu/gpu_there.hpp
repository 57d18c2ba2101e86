// Determines whether a GPU is available for tests.
#pragma once

#include "fl_core/memory/cuda/memory.hpp"

namespace fl::test {

inline bool no_gpu() { return cuda::device_count() == 0; }

// What a test says that is skipped for that.
inline constexpr const char* kGpuMissing = "GPU MISSING: no GPU is visible to the CUDA driver, so this has tested nothing";

}  // namespace fl::test
