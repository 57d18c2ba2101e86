// `fedbits data shard FILE --clients 0-4 --out OUT`: writes the rows of some clients as the file that `fedbits join --shard` reads.
#pragma once

#include <string>
#include <vector>

namespace fl {

struct ShardArguments {
  std::string scenario, clients, data, out;
  std::vector<std::string> settings, plugins;
  int threads = 1;
};

// Writes the file, and returns the exit code. Throws ConfigError for missing options, and in a binary that is built without FL_NET.
int write_shard(const ShardArguments& arguments);

}  // namespace fl
