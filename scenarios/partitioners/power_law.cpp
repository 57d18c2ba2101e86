// Few large and many small clients, each with consecutive classes: sizes follow log-normal draws.
//
// Client u holds classes u, u+1, ... u+k-1 (mod C), of the C classes that have rows; where that leaves a class to nobody (n + k - 1 < C),
// client u begins at class u k. Each owner of a class has min_rows of its rows beforehand; the rest is shared in proportion to draws
// exp(sigma z), z standard normal, one for each client and class. classes = 0: labels play no part; all rows are shuffled and shared by one
// draw per client.
// Source: Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated Optimization in Heterogeneous Networks", MLSys 2020: MNIST on 1000
// clients, two digits each, sigma = 2; the paper calls these sizes a power law. There rows are left over, here each is dealt.
#include <algorithm>
#include <cmath>

#include "fl_core/config/key_error.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct PowerLawOptions {
  std::int64_t classes = 2;
  double sigma = 2.0;
  std::int64_t min_rows = 5;
};
void describe(Schema& schema, PowerLawOptions& options) {
  schema.field("classes", options.classes, "consecutive classes of each client; 0 = rows are dealt regardless of class")
      .at_least(0)
      .at_most(65536)
      .unit("classes");
  schema.field("sigma", options.sigma, "deviation of the logarithm of the sizes; 0 = all alike").at_least(0).at_most(20);
  schema.field("min_rows", options.min_rows, "smallest number of rows of each of a client's classes")
      .at_least(1)
      .at_most(4294967295.0)
      .unit("rows");
}

class PowerLaw final : public Partitioner {
 public:
  explicit PowerLaw(const PowerLawOptions& options) : options_(options) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "power_law");
    RandomSequence random(request.seed, Purpose::partition);
    if (options_.classes == 0) {
      require_min_rows(request, "power_law", options_.min_rows);
      return deal(rows_in_file_order(request.num_rows), request.num_clients, random);
    }
    require_labels(request, "power_law");
    const auto rows = rows_of_classes(request);
    std::vector<std::size_t> classes;  // those that have rows
    for (std::size_t c = 0; c < rows.size(); ++c)
      if (!rows[c].empty()) classes.push_back(c);
    const auto owners = owners_of_classes(request.num_clients, classes.size());
    std::vector<Shard> shards(request.num_clients);
    for (std::size_t c = 0; c < classes.size(); ++c) {
      const auto& of_class = rows[classes[c]];
      require_enough(classes[c], of_class.size(), owners[c].size());
      const std::vector<Shard> pieces = deal(of_class, owners[c].size(), random);
      for (std::size_t o = 0; o < pieces.size(); ++o)
        shards[owners[c][o]].insert(shards[owners[c][o]].end(), pieces[o].begin(), pieces[o].end());
    }
    for (Shard& shard : shards) std::sort(shard.begin(), shard.end());
    return shards;
  }

 private:
  // The rows, shuffled, in n pieces.
  std::vector<Shard> deal(std::vector<std::uint32_t> rows, std::size_t n, RandomSequence& random) const {
    std::vector<double> log_share(n);
    for (double& s : log_share) s = options_.sigma * random.normal();
    random.shuffle(rows.begin(), rows.end());
    return cut(rows, sizes_by_shares(normalised(log_share), rows.size(), static_cast<std::size_t>(options_.min_rows)));
  }

  // [C] the clients that hold each of C classes, ascending.
  std::vector<std::vector<std::uint32_t>> owners_of_classes(std::size_t n, std::size_t C) const {
    const auto k = static_cast<std::size_t>(options_.classes);
    if (k > C) throw key_error("partition.classes", who() + " cannot be met: the data has " + std::to_string(C) + " classes");
    if (n * k < C)
      throw key_error("partition.classes", who() + " for " + std::to_string(n) + " clients leaves some of the " + std::to_string(C) +
                                               " classes to nobody; use at least " + std::to_string((C + k - 1) / k) +
                                               " clients or more classes per client");
    const std::size_t stride = n + k - 1 >= C ? 1 : k;
    std::vector<std::vector<std::uint32_t>> owners(C);
    for (std::size_t u = 0; u < n; ++u)
      for (std::size_t j = 0; j < k; ++j) owners[(u * stride + j) % C].push_back(static_cast<std::uint32_t>(u));
    return owners;
  }

  void require_enough(std::size_t c, std::size_t num_rows, std::size_t num_owners) const {
    const double needed = static_cast<double>(options_.min_rows) * static_cast<double>(num_owners);
    if (needed > static_cast<double>(num_rows))
      throw key_error("partition.kind", "power_law: class " + std::to_string(c) + " has " + std::to_string(num_rows) +
                                            " rows, too few for " + std::to_string(num_owners) + " clients with min_rows = " +
                                            std::to_string(options_.min_rows) + "; use fewer clients or a smaller min_rows");
  }
  std::string who() const { return "power_law: classes = " + std::to_string(options_.classes); }

  PowerLawOptions options_;
};

FL_REGISTER_PARTITIONER(PowerLaw, PowerLawOptions, "power_law", "few large and many small clients, consecutive classes each",
                        "Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, Federated Optimization in Heterogeneous Networks, MLSys 2020");

}  // namespace
}  // namespace fl
