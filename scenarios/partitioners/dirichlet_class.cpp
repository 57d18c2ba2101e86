// Each class is shared out over the clients by its own draw, p_c ~ Dir_n(beta): unequal sizes and unequal classes.
//
// Classes are dealt one after another in ascending order. A client that has at least m/n rows already takes no part in further classes
// (its p is set to 0 and the rest scaled up). Client boundaries within a class are floor(cumulative p * rows of the class). The whole
// draw is repeated while the smallest client has fewer than min_rows rows, at most max_draws times.
// Source: Li, Diao, Chen, He, "Federated Learning on Non-IID Data Silos: An Experimental Study", ICDE 2022; Yurochkin et al., "Bayesian
// Nonparametric Federated Learning of Neural Networks", ICML 2019.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct DirichletClassOptions {
  double beta = 0.5;
  std::int64_t min_rows = 10;
  std::int64_t max_draws = 1000;
};
void describe(Schema& schema, DirichletClassOptions& options) {
  schema.field("beta", options.beta, "concentration of each class over the clients; small is heterogeneous").above(0).at_most(1e9);
  schema.field("min_rows", options.min_rows, "rows that the smallest client must have").at_least(1).at_most(4294967295.0).unit("rows");
  schema.field("max_draws", options.max_draws, "draws after which the request counts as impossible").at_least(1).at_most(1e6);
}

class DirichletClass final : public Partitioner {
 public:
  explicit DirichletClass(const DirichletClassOptions& options) : options_(options) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "dirichlet_class");
    require_labels(request, "dirichlet_class");
    require_min_rows(request, "dirichlet_class", options_.min_rows);
    auto rows = rows_of_classes(request);
    const auto counts = draw_counts(rows, request);
    RandomSequence random(request.seed, Purpose::partition);
    std::vector<Shard> shards(request.num_clients);
    for (std::size_t c = 0; c < rows.size(); ++c) {
      random.shuffle(rows[c].begin(), rows[c].end());
      auto next = rows[c].begin();
      for (std::size_t i = 0; i < shards.size(); ++i) {
        const auto stop = next + static_cast<std::ptrdiff_t>(counts[c][i]);
        shards[i].insert(shards[i].end(), next, stop);
        next = stop;
      }
    }
    for (Shard& shard : shards) std::sort(shard.begin(), shard.end());
    return shards;
  }

 private:
  using Counts = std::vector<std::vector<std::size_t>>;  // [C,n]

  // Draw t has a stream of its own; rows are assigned only once the counts are accepted.
  Counts draw_counts(const std::vector<std::vector<std::uint32_t>>& rows, const PartitionRequest& request) const {
    std::size_t best = 0;
    for (std::int64_t t = 1; t <= options_.max_draws; ++t) {
      check_for_stop([t] { return "draw " + std::to_string(t) + " of a split"; });
      RandomSequence random(request.seed, Purpose::partition, 0, static_cast<std::uint32_t>(t));
      std::vector<std::size_t> sizes(request.num_clients, 0);
      Counts counts;
      for (const auto& of_class : rows) counts.push_back(share_out(of_class.size(), request.num_rows, sizes, random));
      const std::size_t smallest = *std::min_element(sizes.begin(), sizes.end());
      if (smallest >= static_cast<std::size_t>(options_.min_rows)) return counts;
      best = std::max(best, smallest);
    }
    throw key_error("partition.kind",
                    "dirichlet_class: in " + std::to_string(options_.max_draws) + " draws with beta = " + std::to_string(options_.beta) +
                        " the smallest of " + std::to_string(request.num_clients) +
                        " clients never had min_rows = " + std::to_string(options_.min_rows) + " rows (best: " + std::to_string(best) +
                        "); use a larger beta, fewer clients or a smaller min_rows");
  }

  // Counts [n] of one class; adds them to sizes [n].
  std::vector<std::size_t> share_out(std::size_t num_rows, std::size_t num_all_rows, std::vector<std::size_t>& sizes,
                                     RandomSequence& random) const {
    const std::size_t n = sizes.size();
    std::vector<double> log_p = log_gamma_draws(std::vector<double>(n, options_.beta), random);
    for (std::size_t i = 0; i < n; ++i)
      if (sizes[i] * n >= num_all_rows) log_p[i] = -std::numeric_limits<double>::infinity();
    const std::vector<double> p = normalised(log_p);
    std::size_t last = 0;  // the last client that takes part gets what rounding leaves
    for (std::size_t i = 0; i < n; ++i)
      if (p[i] > 0) last = i;
    std::vector<std::size_t> counts(n, 0);
    double cumulative = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= last; ++i) {
      cumulative += p[i];
      const auto boundary = static_cast<std::size_t>(std::floor(cumulative * static_cast<double>(num_rows)));
      const std::size_t stop = i == last ? num_rows : std::clamp(boundary, begin, num_rows);
      counts[i] = stop - begin;
      sizes[i] += counts[i];
      begin = stop;
    }
    return counts;
  }

  DirichletClassOptions options_;
};

FL_REGISTER_PARTITIONER(DirichletClass, DirichletClassOptions, "dirichlet_class",
                        "each class is shared over the clients by a Dirichlet; unequal sizes",
                        "Li, Diao, Chen, He, Federated Learning on Non-IID Data Silos, ICDE 2022");
const bool kDirichletClassAlias = add_alias({"partitioner", "noniid-labeldir", "dirichlet_class", {}, "", "NIID-Bench"});

}  // namespace
}  // namespace fl
