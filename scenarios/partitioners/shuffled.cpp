// One random permutation of all rows, cut into equal blocks: identically distributed clients.
#include "fl_core/config/aliases.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

class Shuffled final : public Partitioner {
 public:
  explicit Shuffled(const NoOptions&) {}
  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "shuffled");
    RandomSequence random(request.seed, Purpose::partition);
    return cut(rows_shuffled(request.num_rows, random), even_sizes(request.num_rows, request.num_clients));
  }
};

FL_REGISTER_PARTITIONER(Shuffled, NoOptions, "shuffled", "a random permutation of all rows, cut evenly", "");
const bool kShuffledAlias = add_alias({"partitioner", "homo", "shuffled", {}, "", "NIID-Bench"});

}  // namespace
}  // namespace fl
