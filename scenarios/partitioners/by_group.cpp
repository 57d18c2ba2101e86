// Whole groups of rows go to clients: the writers, speakers or users that data name, several to each client.
//
// A row's group is the value of one feature, or the part that synthetic data give it to (its own partition). Groups are shuffled and dealt
// in turn, so clients have floor(G/n) or one more of the G groups, whatever the sizes of these.
#include <algorithm>

#include "fl_core/config/key_error.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct ByGroupOptions {
  std::int64_t feature = 0;
};
void describe(Schema& schema, ByGroupOptions& options) {
  schema.field("feature", options.feature, "the feature, counted from 1, whose values are the groups; 0 = the data's own partition")
      .at_least(0)
      .at_most(4294967295.0);
}

class ByGroup final : public Partitioner {
 public:
  explicit ByGroup(const ByGroupOptions& options) : options_(options) {}

  [[nodiscard]] std::size_t group_feature() const override { return static_cast<std::size_t>(options_.feature); }

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "by_group");
    if (request.group.size() != request.num_rows)
      throw key_error("partition.kind", "by_group: the data has no groups of its own; set feature to the one that names them");
    const std::uint32_t last = *std::ranges::max_element(request.group);
    std::vector<std::vector<std::uint32_t>> rows(std::size_t{last} + 1);  // [groups] in file order
    for (std::size_t row = 0; row < request.num_rows; ++row) rows[request.group[row]].push_back(static_cast<std::uint32_t>(row));
    std::erase_if(rows, [](const auto& of_group) { return of_group.empty(); });
    if (rows.size() < request.num_clients)
      throw key_error("partition.kind", "by_group: " + std::to_string(request.num_clients) + " clients cannot share " +
                                            std::to_string(rows.size()) + " groups; ask for at most " + std::to_string(rows.size()) +
                                            " clients");
    RandomSequence random(request.seed, Purpose::partition);
    random.shuffle(rows.begin(), rows.end());
    std::vector<Shard> shards(request.num_clients);
    for (std::size_t g = 0; g < rows.size(); ++g) {
      Shard& shard = shards[g % request.num_clients];
      shard.insert(shard.end(), rows[g].begin(), rows[g].end());
    }
    for (Shard& shard : shards) std::sort(shard.begin(), shard.end());
    return shards;
  }

 private:
  ByGroupOptions options_;
};

FL_REGISTER_PARTITIONER(ByGroup, ByGroupOptions, "by_group", "whole groups of rows, several to each client", "");

}  // namespace
}  // namespace fl
