// Blocks of consecutive rows in file order: the split of the published convex experiments that keep the file as it is.
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

class Contiguous final : public Partitioner {
 public:
  explicit Contiguous(const NoOptions&) {}
  bool draws() const override { return false; }
  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "contiguous");
    return cut(rows_in_file_order(request.num_rows), even_sizes(request.num_rows, request.num_clients));
  }
};

FL_REGISTER_PARTITIONER(Contiguous, NoOptions, "contiguous",
                        "blocks of consecutive rows in file order; first rows mod clients get one more", "");

}  // namespace
}  // namespace fl
