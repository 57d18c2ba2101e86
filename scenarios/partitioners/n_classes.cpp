// Every client holds rows of exactly k classes; the rows of a class are shared evenly by the clients that hold it.
//
// C classes that have rows, n clients. Every class needs an owner, so n k >= C:
//   first   client t mod n takes class t mod C, for t = 0 .. max(n, C) - 1: with n >= C one class each, with n < C all classes go round
//   then    each client, in order, draws classes that it lacks, all alike likely, until it has k
// The rows of a class are shuffled and cut evenly over its owners in ascending order. Source: Li, Diao, Chen, He, "Federated Learning on
// Non-IID Data Silos: An Experimental Study", ICDE 2022, where it is called #C=k; rows of classes without an owner are lost there.
#include <algorithm>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/key_error.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct NClassesOptions {
  std::int64_t classes = 2;
};
void describe(Schema& schema, NClassesOptions& options) {
  schema.field("classes", options.classes, "classes of each client").at_least(1).at_most(65536).unit("classes");
}

class NClasses final : public Partitioner {
 public:
  explicit NClasses(const NClassesOptions& options) : k_(static_cast<std::size_t>(options.classes)) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "n_classes");
    require_labels(request, "n_classes");
    std::vector<std::vector<std::uint32_t>> rows = rows_of_classes(request);
    std::erase_if(rows, [](const auto& of_class) { return of_class.empty(); });
    require_owners(request.num_clients, rows.size());
    RandomSequence random(request.seed, Purpose::partition);
    const std::vector<std::vector<std::uint32_t>> owners = draw_owners(request.num_clients, rows.size(), random);
    std::vector<Shard> shards(request.num_clients);
    for (std::size_t c = 0; c < rows.size(); ++c) {
      require_enough(rows[c].size(), owners[c].size());
      random.shuffle(rows[c].begin(), rows[c].end());
      const std::vector<Shard> pieces = cut(rows[c], even_sizes(rows[c].size(), owners[c].size()));
      for (std::size_t o = 0; o < pieces.size(); ++o)
        shards[owners[c][o]].insert(shards[owners[c][o]].end(), pieces[o].begin(), pieces[o].end());
    }
    for (Shard& shard : shards) std::sort(shard.begin(), shard.end());
    return shards;
  }

 private:
  // [C] the clients that hold each class, ascending.
  std::vector<std::vector<std::uint32_t>> draw_owners(std::size_t n, std::size_t C, RandomSequence& random) const {
    std::vector<std::vector<std::uint32_t>> classes_of(n);
    for (std::size_t t = 0; t < std::max(n, C); ++t) classes_of[t % n].push_back(static_cast<std::uint32_t>(t % C));
    std::vector<std::vector<std::uint32_t>> owners(C);
    for (std::uint32_t i = 0; i < n; ++i) {
      std::vector<std::uint32_t>& mine = classes_of[i];
      std::vector<std::uint32_t> others = rows_in_file_order(C);
      std::erase_if(others, [&](std::uint32_t c) { return std::ranges::find(mine, c) != mine.end(); });
      random.shuffle(others.begin(), others.end());
      mine.insert(mine.end(), others.begin(), others.begin() + static_cast<std::ptrdiff_t>(k_ - mine.size()));
      for (const std::uint32_t c : mine) owners[c].push_back(i);
    }
    return owners;
  }

  void require_owners(std::size_t n, std::size_t C) const {
    if (k_ > C) throw key_error("partition.classes", who() + " cannot be met: the data has rows of " + std::to_string(C) + " classes");
    if (n * k_ < C)
      throw key_error("partition.classes", who() + " for " + std::to_string(n) + " clients leaves rows of some of the " +
                                               std::to_string(C) + " classes to nobody; use at least " + std::to_string((C + k_ - 1) / k_) +
                                               " clients or more classes per client");
  }
  void require_enough(std::size_t num_rows, std::size_t num_owners) const {
    if (num_rows < num_owners)
      throw key_error("partition.classes", who() + " gives a class of " + std::to_string(num_rows) + " rows to " +
                                               std::to_string(num_owners) +
                                               " clients; use fewer clients, fewer classes per client or another seed");
  }
  std::string who() const { return "n_classes: classes = " + std::to_string(k_); }

  std::size_t k_;
};

FL_REGISTER_PARTITIONER(NClasses, NClassesOptions, "n_classes", "each client gets rows of exactly `classes` classes",
                        "Li, Diao, Chen, He, Federated Learning on Non-IID Data Silos, ICDE 2022");
const bool kNClassesAlias = add_alias({"partitioner", "noniid-#label#", "n_classes", {}, "classes", "NIID-Bench"});

}  // namespace
}  // namespace fl
