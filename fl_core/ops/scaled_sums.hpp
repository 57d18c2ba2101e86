// Sums of products whose every product is rounded to double before it is added. The clients' folder contracts a product and a sum into one
// operation; sums of clients' state that are taken there, and have to be the bytes of sums that are taken elsewhere, use these.
#pragma once

#include <span>

namespace fl {

// Adds factor v to the first entries of sum.
template <class U>
void add_scaled(double factor, std::span<const U> v, std::span<double> sum);

}  // namespace fl
