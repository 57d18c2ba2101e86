// Rows sorted by class, cut into n*s even pieces, s pieces to each client: few classes per client.
//
//   s = 1: client i gets piece i, nothing is random (the hardest split of the convex studies)
//   s = 2: the pathological split of McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
//          AISTATS 2017: 200 pieces of 300 images, two at random to each of 100 clients; also called "shards"
#include <algorithm>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/key_error.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct SortedByLabelOptions {
  std::int64_t pieces_per_client = 1;
};
void describe(Schema& schema, SortedByLabelOptions& options) {
  schema
      .field("pieces_per_client", options.pieces_per_client,
             "pieces of the sorted rows that each client gets, dealt at random when above 1")
      .at_least(1)
      .at_most(65536);
}

class SortedByLabel final : public Partitioner {
 public:
  explicit SortedByLabel(const SortedByLabelOptions& options) : pieces_per_client_(static_cast<std::size_t>(options.pieces_per_client)) {}

  bool draws() const override { return pieces_per_client_ > 1; }
  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "sorted_by_label");
    require_labels(request, "sorted_by_label");
    const std::size_t num_pieces = request.num_clients * pieces_per_client_;
    if (num_pieces > request.num_rows)
      throw key_error("partition.kind", "sorted_by_label: " + std::to_string(request.num_clients) +
                                            " clients with pieces_per_client = " + std::to_string(pieces_per_client_) + " need " +
                                            std::to_string(num_pieces) + " rows, the data has " + std::to_string(request.num_rows));
    const std::vector<Shard> pieces = cut(rows_by_label(request), even_sizes(request.num_rows, num_pieces));
    return pieces_per_client_ == 1 ? pieces : deal(pieces, request);
  }

 private:
  std::vector<Shard> deal(const std::vector<Shard>& pieces, const PartitionRequest& request) const {
    RandomSequence random(request.seed, Purpose::partition);
    const std::vector<std::uint32_t> order = rows_shuffled(pieces.size(), random);
    std::vector<Shard> shards(request.num_clients);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Shard& piece = pieces[order[i]];
      Shard& shard = shards[i / pieces_per_client_];
      shard.insert(shard.end(), piece.begin(), piece.end());
    }
    for (Shard& shard : shards) std::sort(shard.begin(), shard.end());
    return shards;
  }
  std::size_t pieces_per_client_;
};

FL_REGISTER_PARTITIONER(SortedByLabel, SortedByLabelOptions, "sorted_by_label", "rows sorted by class, cut evenly; few classes per client",
                        "McMahan, Moore, Ramage, Hampson, Aguera y Arcas, Communication-Efficient Learning of Deep Networks, AISTATS 2017");
const bool kSortedByLabelAlias =
    add_alias({"partitioner", "shards", "sorted_by_label", {{"pieces_per_client", Value{std::int64_t{2}}}}, "", "McMahan et al."});

}  // namespace
}  // namespace fl
