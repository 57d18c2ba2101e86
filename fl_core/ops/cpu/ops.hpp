// Every operation on the CPU. One thread works on one block of clients; nothing in here starts another.
#pragma once

#include <cstddef>

#include "fl_core/ops/cpu/dense.hpp"
#include "fl_core/ops/cpu/gather.hpp"
#include "fl_core/ops/cpu/kept_levels.hpp"
#include "fl_core/ops/cpu/linalg.hpp"
#include "fl_core/ops/cpu/low_rank.hpp"
#include "fl_core/ops/cpu/quantize.hpp"
#include "fl_core/ops/cpu/reduce.hpp"
#include "fl_core/ops/cpu/select.hpp"
#include "fl_core/ops/cpu/sort.hpp"
#include "fl_core/ops/cpu/ternary.hpp"
#include "fl_core/ops/cpu/top_k.hpp"
#include "fl_core/ops/cpu/vectors.hpp"

namespace fl::cpu {

// f(i) for i = 0 .. n-1, which do not depend on each other.
template <class F>
void for_each(const Exec&, std::size_t n, F f) {
  FL_IVDEP
  for (std::size_t i = 0; i < n; ++i) f(i);
}

}  // namespace fl::cpu
