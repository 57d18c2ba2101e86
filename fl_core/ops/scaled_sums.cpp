#include "fl_core/ops/scaled_sums.hpp"

#include <cstddef>

namespace fl {

template <class U>
void add_scaled(double factor, std::span<const U> v, std::span<double> sum) {
  for (std::size_t j = 0; j < v.size(); ++j) sum[j] += factor * static_cast<double>(v[j]);
}

template void add_scaled(double, std::span<const float>, std::span<double>);
template void add_scaled(double, std::span<const double>, std::span<double>);

}  // namespace fl
