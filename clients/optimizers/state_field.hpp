// The option `state` of local optimizers: how long their vectors last.
#pragma once

#include "clients/learning/local_optimizer.hpp"
#include "fl_core/config/options.hpp"

namespace fl {

inline void state_field(Schema& schema, StateLife& life) {
  schema
      .choice("state", life, {{StateLife::round, "round"}, {StateLife::client, "client"}},
              "the optimizer's vectors begin at zero in each round, or every client keeps its own between its rounds, as far as its "
              "messages arrived")
      .added_later(Value{std::string("round")});
}

}  // namespace fl
