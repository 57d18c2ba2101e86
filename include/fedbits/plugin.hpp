// The one header of a plug-in, with everything that a compressor, model, layer, measure or partitioner is written with.
//
// This header and those that it includes are the plug-in interface, together with the headers of other roles and of CUDA halves that
// cmake/FedbitsInterface.cmake names. The number in cmake/plugin_interface.txt is its version. docs/plugins.md says how plug-ins are built.
#pragma once

#include "clients/model.hpp"
#include "clients/nn/module.hpp"
#include "compressors/compressor.hpp"
#include "compressors/quantizer.hpp"
#include "compressors/sparsity.hpp"
#include "compressors/state_from_message.hpp"
#include "compressors/thresholds.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"
#include "scenarios/measures/measure.hpp"
#include "scenarios/partitioners/draws.hpp"
