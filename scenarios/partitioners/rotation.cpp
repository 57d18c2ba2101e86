// Rows are dealt at random and evenly; each group of clients sees its images turned by another angle.
//
// Client i is of group i mod g and turns its images counter-clockwise by (i mod g) 360/g degrees; g = 4: 0, 90, 180 and 270 degrees, g = 2:
// 0 and 180. Quarter turns move pixels and change none. Source: Ghosh, Chung, Yin, Ramchandran, "An Efficient Framework for Clustered
// Federated Learning", NeurIPS 2020.
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct RotationOptions {
  std::int64_t groups = 4;
};
void describe(Schema& schema, RotationOptions& options) {
  schema.field("groups", options.groups, "groups of clients, 360/groups degrees apart: 1, 2 or 4").at_least(1).at_most(4);
}
void validate(const RotationOptions& options, Problems& problems) {
  if (4 % options.groups != 0) problems.push_back({"groups", "must be 1, 2 or 4, is " + std::to_string(options.groups)});
}

class Rotation final : public Partitioner {
 public:
  explicit Rotation(const RotationOptions& options) : groups_(static_cast<std::size_t>(options.groups)) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "rotation");
    RandomSequence random(request.seed, Purpose::partition);
    return cut(rows_shuffled(request.num_rows, random), even_sizes(request.num_rows, request.num_clients));
  }
  [[nodiscard]] std::vector<FeatureShift> feature_shifts(std::size_t num_clients) const override {
    std::vector<FeatureShift> shifts(num_clients);
    for (std::size_t i = 0; i < num_clients; ++i) shifts[i].quarter_turns = static_cast<unsigned>(i % groups_ * (4 / groups_));
    return shifts;
  }

 private:
  std::size_t groups_;
};

FL_REGISTER_PARTITIONER(Rotation, RotationOptions, "rotation", "rows dealt at random; groups of clients see rotated images",
                        "Ghosh, Chung, Yin, Ramchandran, An Efficient Framework for Clustered Federated Learning, NeurIPS 2020");

}  // namespace
}  // namespace fl
