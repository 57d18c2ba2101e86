// The cost of a message's code, for the clock of simulated time.
#pragma once

#include "fl_core/round/stated_cost.hpp"

namespace fl::codec {

// The work of writing or reading one bit of a message. bit_stream.hpp takes about eight operations for each number (two shifts, an or, two
// sums, a comparison, and a look at the next word), and positions and levels take as many to become numbers. Numbers have between 3 bits,
// for a level, and 32, for a value: long messages consist of values, whose operations are those that take time. A bit is written and read
// once.
inline constexpr Work kWorkPerBit{16 / 32.0, 2 / 8.0};

}  // namespace fl::codec
