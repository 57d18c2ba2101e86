// The header of plug-ins, with everything that a model, layer, measure or partitioner is written with, and the interface of compressors,
// which include fedbits/operations.hpp too.
//
// This header and those that it includes are the plug-in interface, together with the operations, and the headers of other roles and of
// CUDA halves that cmake/FedbitsInterface.cmake names. The number in cmake/plugin_interface.txt is its version. docs/plugins.md says how
// plug-ins are built.
#pragma once

#include "clients/learning/model.hpp"
#include "clients/nn/module.hpp"
#include "compressors/compressor.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/measures/measure.hpp"
#include "scenarios/partitioners/draws.hpp"
