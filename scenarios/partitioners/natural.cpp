// The partition that data comes with: roles of plays, users who rate, clients of synthetic data.
#include "fl_core/config/aliases.hpp"
#include "fl_core/config/key_error.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

class Natural final : public Partitioner {
 public:
  explicit Natural(const NoOptions&) {}

  // clients = 0 takes as many as the data has.
  bool draws() const override { return false; }
  std::vector<Shard> split(const PartitionRequest& request) const override {
    const auto begin = request.natural_begin;
    if (begin.size() < 2)
      throw key_error("partition.kind", "natural: the data has no partition of its own; text by role, ratings and synthetic data have one");
    const std::size_t n = begin.size() - 1;
    if (request.num_clients != 0 && request.num_clients != n)
      throw key_error("partition.kind", "natural: clients = " + std::to_string(request.num_clients) + ", the data is made of " +
                                            std::to_string(n) + "; set clients = " + std::to_string(n) + ", or 0");
    if (begin[0] != 0 || begin[n] != request.num_rows)
      throw key_error("partition.kind", "natural: the data's partition covers rows " + std::to_string(begin[0]) + " to " +
                                            std::to_string(begin[n]) + " of " + std::to_string(request.num_rows) +
                                            "; `rows` cannot be combined with it");
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < n; ++i) {
      if (begin[i + 1] <= begin[i]) throw key_error("partition.kind", "natural: client " + std::to_string(i) + " has no rows");
      sizes.push_back(begin[i + 1] - begin[i]);
    }
    return cut(rows_in_file_order(request.num_rows), sizes);
  }
};

FL_REGISTER_PARTITIONER(Natural, NoOptions, "natural", "the partition that data comes with: roles, users, synthetic clients", "");
const bool kNaturalAlias = add_alias({"partitioner", "real", "natural", {}, "", "NIID-Bench"});

}  // namespace
}  // namespace fl
