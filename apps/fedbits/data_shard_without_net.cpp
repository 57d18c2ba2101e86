// Shards of a binary that is built without FL_NET.
#include "apps/fedbits/data_shard.hpp"
#include "fl_core/config/error.hpp"

namespace fl {

int write_shard(const ShardArguments&) {
  throw ConfigError("data: shard: this fedbits was built without the network (FL_NET=OFF), and has no `fedbits join` that reads a shard");
}

}  // namespace fl
