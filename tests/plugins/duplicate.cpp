// Takes a name that a built-in part has.
#include "fedbits/plugin.hpp"

namespace fl {
namespace {

class Contiguous final : public Partitioner {
 public:
  explicit Contiguous(const NoOptions&) {}
  [[nodiscard]] std::vector<Shard> split(const PartitionRequest&) const override { return {}; }
};
FL_REGISTER_PARTITIONER(Contiguous, NoOptions, "contiguous", "another one of that name", "");

}  // namespace
}  // namespace fl
