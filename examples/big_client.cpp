// A partitioner in one file: one client holds a share of all rows, the others have the rest in equal parts. Rows are shuffled first, so
// that clients differ in size and in nothing else.
//
// docs/how-to-add-a-partitioner.md walks through this file.
#include <algorithm>

#include "fedbits/plugin.hpp"

namespace fl {
namespace {

// 1. What a scenario file may say.
struct BigClientOptions {
  double share = 0.5;
};
inline void describe(Schema& schema, BigClientOptions& options) {
  schema.field("share", options.share, "fraction of the rows that the first client holds").above(0).below(1);
}

// 2. The rule. It sees labels and counts, never features.
class BigClient final : public Partitioner {
 public:
  explicit BigClient(const BigClientOptions& options) : share_(options.share) {}

  [[nodiscard]] std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "big_client");
    RandomSequence random(request.seed, Purpose::partition);
    return cut(rows_shuffled(request.num_rows, random), sizes(request.num_rows, request.num_clients));
  }

 private:
  // The first client takes its share, as long as every other keeps a row.
  [[nodiscard]] std::vector<std::size_t> sizes(std::size_t num_rows, std::size_t num_clients) const {
    if (num_clients == 1) return {num_rows};
    const auto wanted = static_cast<std::size_t>(share_ * static_cast<double>(num_rows));
    const std::size_t first = std::clamp<std::size_t>(wanted, 1, num_rows - (num_clients - 1));
    std::vector<std::size_t> sizes = even_sizes(num_rows - first, num_clients - 1);
    sizes.insert(sizes.begin(), first);
    return sizes;
  }

  double share_;
};

// 3. The name in scenario files, a summary and a source for `fedbits list`.
FL_REGISTER_PARTITIONER(BigClient, BigClientOptions, "big_client", "one client holds a share of all rows, the others equal parts", "");

}  // namespace
}  // namespace fl
