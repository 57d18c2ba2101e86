// Sums of products in which every product is rounded to double before the addition. The clients' folder is compiled with contraction of a
// product and a sum into one operation. Sums of client state that are computed there, and must have the same bytes as sums computed
// elsewhere, use these functions.
#pragma once

#include <span>

namespace fl {

// Adds factor * v to the first entries of sum.
template <class U>
void add_scaled(double factor, std::span<const U> v, std::span<double> sum);

}  // namespace fl
