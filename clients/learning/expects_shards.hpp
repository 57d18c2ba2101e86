// An interface of models that arrange the clients' rows for gradients and losses over all rows of a client.
#pragma once

#include <span>

#include "fl_core/config/device.hpp"
#include "fl_core/data/dataset.hpp"

namespace fl {

class FL_API ExpectsShards {
 public:
  virtual ~ExpectsShards() = default;
  // Announces the rows of the clients, once, after Model::bind. Results keep their bits. The shards do not change as long as the model is
  // used.
  virtual void expect_shards(std::span<const Shard> shards) = 0;
};

}  // namespace fl
