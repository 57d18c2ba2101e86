// Clients of the same distribution and unequal sizes: sizes follow one draw q ~ Dir_n(beta), rows are dealt at random.
//
// Every client has min_rows rows beforehand; the rest, r = m - n min_rows, is shared as floor(q_i r), and what rounding leaves goes one by
// one to the largest fractions (ties to the lower client). Source: Li, Diao, Chen, He, "Federated Learning on Non-IID Data Silos: An
// Experimental Study", ICDE 2022.
#include "fl_core/config/aliases.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct QuantitySkewOptions {
  double beta = 0.5;
  std::int64_t min_rows = 1;
};
void describe(Schema& schema, QuantitySkewOptions& options) {
  schema.field("beta", options.beta, "concentration of the client sizes; small is unequal").above(0).at_most(1e9);
  schema.field("min_rows", options.min_rows, "smallest number of rows of any client").at_least(1).at_most(4294967295.0).unit("rows");
}

class QuantitySkew final : public Partitioner {
 public:
  explicit QuantitySkew(const QuantitySkewOptions& options) : options_(options) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "quantity_skew");
    require_min_rows(request, "quantity_skew", options_.min_rows);
    RandomSequence random(request.seed, Purpose::partition);
    const std::vector<double> q = draw_dirichlet(std::vector<double>(request.num_clients, options_.beta), random);
    return cut(rows_shuffled(request.num_rows, random), sizes_by_shares(q, request.num_rows, static_cast<std::size_t>(options_.min_rows)));
  }

 private:
  QuantitySkewOptions options_;
};

FL_REGISTER_PARTITIONER(QuantitySkew, QuantitySkewOptions, "quantity_skew", "client sizes by a Dirichlet, rows dealt at random",
                        "Li, Diao, Chen, He, Federated Learning on Non-IID Data Silos, ICDE 2022");
const bool kQuantitySkewAlias =
    add_alias({"partitioner", "iid-diff-quantity", "quantity_skew", {{"min_rows", Value{std::int64_t{10}}}}, "", "NIID-Bench"});

}  // namespace
}  // namespace fl
