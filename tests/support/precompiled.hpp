// Headers that most tests include; compiled once for all of them (cmake/FedbitsPrecompiled.cmake). Each test still includes the headers
// that it uses.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"
