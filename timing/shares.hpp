// Kinds of clients by shares: client i is of the kind at which the cumulated shares pass its quantile u_i.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fl_core/config/options.hpp"

namespace fl {

// Adds a problem with the key `tiers` unless there is a tier, names differ, and shares are positive and sum to 1.
FL_API void check_tiers(const std::vector<std::string>& names, const std::vector<double>& shares, Problems& problems);

// Returns the kind of a client with quantile u: the first k with shares[0] + ... + shares[k] > u.
[[nodiscard]] FL_API std::size_t kind_at(double u, const std::vector<double>& shares);

}  // namespace fl
