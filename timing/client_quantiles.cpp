#include "timing/client_quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "fl_core/config/key_error.hpp"
#include "fl_core/random/normal.hpp"

namespace fl {
namespace {

// Returns a property of each client as numbers; empty for nothing.
std::vector<double> property_of(Follows follows, const ClientFacts& clients) {
  if (follows == Follows::rows) {
    if (clients.rows.size() != clients.num_clients)
      throw key_error("follows", "= \"rows\" needs the number of training rows of each client, which is not known here; drop the key");
    return {clients.rows.begin(), clients.rows.end()};
  }
  if (follows == Follows::labels) {
    if (clients.labels.size() != clients.num_clients)
      throw key_error("follows", "= \"labels\" needs classes, which the data do not have; use \"rows\" or drop the key");
    return {clients.labels.begin(), clients.labels.end()};
  }
  return {};
}

// Returns the normal scores g [N] of the clients' ranks. Clients with equal properties are ranked by their draws.
std::vector<double> rank_scores(const std::vector<double>& property, const std::vector<double>& draws) {
  const std::size_t N = property.size();
  std::vector<std::size_t> order(N);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(property[i], draws[i], i); });
  std::vector<double> scores(N);
  for (std::size_t rank = 0; rank < N; ++rank)
    scores[order[rank]] = normal_quantile((static_cast<double>(rank) + 0.5) / static_cast<double>(N));
  return scores;
}

}  // namespace

void describe_quantiles(Schema& schema, QuantileOptions& options, const std::string& high_end) {
  schema.choice("follows", options.follows, {{Follows::nothing, "nothing"}, {Follows::rows, "rows"}, {Follows::labels, "labels"}},
                "order of the clients that `correlation` refers to: by training rows, or by the mean class number of these");
  schema
      .field("correlation", options.correlation,
             "of the clients' order here with that of `follows` (Gaussian copula): at 1 clients with more rows or higher classes are " +
                 high_end + ", at -1 the others")
      .at_least(-1)
      .at_most(1);
}

void validate_quantiles(const QuantileOptions& options, Problems& problems) {
  if (options.follows == Follows::nothing && options.correlation != 0)
    problems.push_back({"correlation", "needs follows = \"rows\" or \"labels\", the order that it is a correlation with"});
}

void ClientQuantiles::open(const QuantileOptions& options, const ClientFacts& clients, Purpose purpose) {
  score_.resize(clients.num_clients);
  constexpr double kHalfStep = 0x1p-54;  // draws are multiples of 2^-53; none is 0
  for (std::size_t i = 0; i < score_.size(); ++i)
    score_[i] = normal_quantile(RandomSequence(clients.seed, purpose, static_cast<std::uint32_t>(i)).uniform() + kHalfStep);
  const std::vector<double> property = property_of(options.follows, clients);
  if (property.empty()) return;
  const std::vector<double> g = rank_scores(property, score_);
  const double rho = options.correlation, rest = std::sqrt((1 - rho) * (1 + rho));
  for (std::size_t i = 0; i < score_.size(); ++i) score_[i] = rho * g[i] + rest * score_[i];
}

double ClientQuantiles::quantile(std::uint32_t client) const { return normal_probability(score_[client]); }

}  // namespace fl
