// Which rows of a data set are held out for testing at random.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/data/dataset.hpp"

namespace fl {

// Returns the held-out rows in ascending order: the part `fraction` of `num_rows`, rounded down, drawn with `seed`.
[[nodiscard]] FL_API Shard held_out_rows(std::size_t num_rows, double fraction, std::uint64_t seed);

}  // namespace fl
