// The operations with which compressors make messages, on the CPU and in CUDA. A compressor includes this header after fedbits/plugin.hpp.
//
// Most of them are templates: the compiler puts the functors of a plug-in into their loops.
#pragma once

#include "compressors/quantizer.hpp"
#include "compressors/sparsity.hpp"
#include "compressors/state_from_message.hpp"
#include "compressors/thresholds.hpp"
#include "fl_core/ops/ops.hpp"
