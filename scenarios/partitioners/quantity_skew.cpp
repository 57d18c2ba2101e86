// Clients of the same distribution and unequal sizes: sizes follow one draw q ~ Dir_n(beta), rows are dealt at random.
//
// Every client has min_rows rows beforehand; the rest, r = m - n min_rows, is shared as floor(q_i r), and what rounding leaves goes one by
// one to the largest fractions (ties to the lower client). Source: Li, Diao, Chen, He, "Federated Learning on Non-IID Data Silos: An
// Experimental Study", ICDE 2022.
#include <algorithm>
#include <cmath>

#include "fl_core/error.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct QuantitySkewOptions {
  double beta = 0.5;
  std::int64_t min_rows = 1;
};
void describe(Schema& schema, QuantitySkewOptions& options) {
  schema.field("beta", options.beta, "concentration of the client sizes; small is unequal").above(0).at_most(1e9);
  schema.field("min_rows", options.min_rows, "rows that every client has at least").at_least(1).unit("rows");
}

class QuantitySkew final : public Partitioner {
 public:
  explicit QuantitySkew(const QuantitySkewOptions& options) : options_(options) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "quantity_skew");
    const double needed = static_cast<double>(options_.min_rows) * static_cast<double>(request.num_clients);
    if (needed > static_cast<double>(request.num_rows))
      throw ConfigError("partition.quantity_skew: " + std::to_string(request.num_clients) +
                        " clients with min_rows = " + std::to_string(options_.min_rows) + " need more than the " +
                        std::to_string(request.num_rows) + " rows of the data");
    RandomSequence random(request.seed, Purpose::partition);
    const std::vector<double> q = draw_dirichlet(std::vector<double>(request.num_clients, options_.beta), random);
    return cut(rows_shuffled(request.num_rows, random), sizes(q, request.num_rows));
  }

 private:
  std::vector<std::size_t> sizes(const std::vector<double>& q, std::size_t num_rows) const {
    const std::size_t n = q.size(), reserved = static_cast<std::size_t>(options_.min_rows);
    const std::size_t rest = num_rows - n * reserved;
    std::vector<std::size_t> sizes(n, reserved);
    std::vector<double> fraction(n);
    std::size_t dealt = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double exact = q[i] * static_cast<double>(rest);
      const auto whole = std::min(static_cast<std::size_t>(exact), rest - dealt);
      fraction[i] = exact - static_cast<double>(whole);
      sizes[i] += whole;
      dealt += whole;
    }
    std::vector<std::uint32_t> order = rows_in_file_order(n);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return fraction[a] > fraction[b]; });
    for (std::size_t i = 0; dealt < rest; i = (i + 1) % n, ++dealt) ++sizes[order[i]];
    return sizes;
  }

  QuantitySkewOptions options_;
};

FL_REGISTER_PARTITIONER(QuantitySkew, QuantitySkewOptions, "quantity_skew", "client sizes by a Dirichlet, rows dealt at random",
                        "Li, Diao, Chen, He, Federated Learning on Non-IID Data Silos, ICDE 2022");

}  // namespace
}  // namespace fl
