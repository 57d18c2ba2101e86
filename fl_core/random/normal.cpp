#include "fl_core/random/normal.hpp"

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numbers>

namespace fl {

double normal_probability(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

double normal_quantile(double p) { return boost::math::quantile(boost::math::normal(), p); }

}  // namespace fl
