// Loads well, and hangs while its part is created.
#include <unistd.h>

#include "fedbits/plugin.hpp"

namespace fl {
namespace {

class Idle final : public Partitioner {
 public:
  explicit Idle(const NoOptions&) {
    for (;;) ::pause();
  }
  [[nodiscard]] std::vector<Shard> split(const PartitionRequest&) const override { return {}; }
};
FL_REGISTER_PARTITIONER(Idle, NoOptions, "idle", "never made", "");

}  // namespace
}  // namespace fl
