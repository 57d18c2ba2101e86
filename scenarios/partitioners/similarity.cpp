// s percent of the rows are dealt at random and evenly, the rest sorted by class and cut: from sorted (0) to shuffled (100) by one dial.
//
// round(s/100 m) rows, drawn at random, are the even part. All clients have equal sizes.
// Source: Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020.
#include <algorithm>
#include <cmath>

#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

struct SimilarityOptions {
  double percent = 10;
};
void describe(Schema& schema, SimilarityOptions& options) {
  schema.field("percent", options.percent, "share of the rows that is dealt at random").at_least(0).at_most(100).unit("%");
}

class Similarity final : public Partitioner {
 public:
  explicit Similarity(const SimilarityOptions& options) : options_(options) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "similarity");
    require_labels(request, "similarity");
    RandomSequence random(request.seed, Purpose::partition);
    std::vector<std::uint32_t> order = rows_shuffled(request.num_rows, random);
    const auto num_even = static_cast<std::size_t>(std::llround(options_.percent / 100 * static_cast<double>(request.num_rows)));
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(num_even), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return request.label[a] != request.label[b] ? request.label[a] < request.label[b] : a < b;
    });

    const auto sizes = even_sizes(request.num_rows, request.num_clients), even = even_sizes(num_even, request.num_clients);
    const auto rows = std::span<const std::uint32_t>(order);
    std::vector<std::size_t> sorted_sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) sorted_sizes.push_back(sizes[i] - even[i]);
    std::vector<Shard> shards = cut(rows.first(num_even), even), sorted = cut(rows.subspan(num_even), sorted_sizes);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      shards[i].insert(shards[i].end(), sorted[i].begin(), sorted[i].end());
      std::sort(shards[i].begin(), shards[i].end());
    }
    return shards;
  }

 private:
  SimilarityOptions options_;
};

FL_REGISTER_PARTITIONER(Similarity, SimilarityOptions, "similarity", "percent of the rows dealt at random, the rest sorted by class",
                        "Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, SCAFFOLD, ICML 2020");

}  // namespace
}  // namespace fl
