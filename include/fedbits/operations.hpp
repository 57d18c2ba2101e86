// The operations with which compressors make messages, on the CPU and in CUDA. A compressor includes this header after fedbits/plugin.hpp.
//
// Most of them are templates: the compiler puts the functors of a plug-in into their loops.
#pragma once

#include "compressors/support/quantizer.hpp"
#include "compressors/support/sparsity.hpp"
#include "compressors/support/state_from_message.hpp"
#include "compressors/support/thresholds.hpp"
#include "fl_core/ops/ops.hpp"
