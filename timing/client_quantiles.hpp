// The quantile at which each client stands in a distribution of speeds, rates or times, and the dial that ties it to the client's data.
//
//   z_i = rho g_i + sqrt(1 - rho^2) e_i,     u_i = Phi(z_i)
//   g_i = Phi^-1((rank of client i + 1/2) / N),  ranks 0 .. N-1 by training rows or by mean class number, ties in drawn order
//   e_i  standard normal draws, one for each client
// With correlation rho = 0 the z_i are independent of the data, with 1 their order is that of the data, with -1 the opposite order. This is
// a Gaussian copula: whatever distribution a kind reads at u_i, rho decides how its order depends on the data. R. B. Nelsen, "An
// introduction to copulas", Springer 2006, 2.3.6 and 3.1. Spearman's rank correlation with the data is about (6 / pi) asin(rho / 2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fl_core/config/options.hpp"
#include "fl_core/random/random.hpp"
#include "timing/client_facts.hpp"

namespace fl {

// Properties of a client's data whose order a random kind follows.
enum class Follows { nothing, rows, labels };

struct QuantileOptions {
  Follows follows = Follows::nothing;
  double correlation = 0;
};
// Adds the keys `follows` and `correlation`. The documentation says which end of the order is the high one: "faster".
FL_API void describe_quantiles(Schema& schema, QuantileOptions& options, const std::string& high_end);
FL_API void validate_quantiles(const QuantileOptions& options, Problems& problems);

class FL_API ClientQuantiles {
 public:
  // Draws the quantiles of all clients. Throws ConfigError (key `follows`) if the data do not have the property that they follow.
  void open(const QuantileOptions& options, const ClientFacts& clients, Purpose purpose);
  // Returns z_i, and u_i in (0, 1).
  [[nodiscard]] double score(std::uint32_t client) const { return score_[client]; }
  [[nodiscard]] double quantile(std::uint32_t client) const;

 private:
  std::vector<double> score_;  // [N]
};

}  // namespace fl
