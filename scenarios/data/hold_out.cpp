#include "scenarios/data/hold_out.hpp"

#include <algorithm>
#include <numeric>

#include "fl_core/random/random.hpp"

namespace fl {

Shard held_out_rows(std::size_t num_rows, double fraction, std::uint64_t seed) {
  Shard rows(num_rows);
  std::iota(rows.begin(), rows.end(), 0u);
  RandomSequence(seed, Purpose::holdout).shuffle(rows.begin(), rows.end());
  rows.resize(static_cast<std::size_t>(fraction * static_cast<double>(num_rows)));
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace fl
