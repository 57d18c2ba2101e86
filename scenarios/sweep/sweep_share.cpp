#include "scenarios/sweep/sweep_share.hpp"

#include <stdexcept>

#include "fl_core/config/error.hpp"

namespace fl {

SweepShard parse_shard(const std::string& text) {
  SweepShard shard;
  std::size_t slash = text.find('/'), used = 0, used_count = 0;
  try {
    if (slash == std::string::npos) throw std::invalid_argument("no slash");
    shard.index = std::stoull(text.substr(0, slash), &used);
    shard.count = std::stoull(text.substr(slash + 1), &used_count);
    if (used != slash || used_count != text.size() - slash - 1) throw std::invalid_argument("more than numbers");
  } catch (const std::exception&) {
    throw ConfigError("--shard: must be i/n with 1 <= i <= n, such as 2/8, is '" + text + "'");
  }
  if (shard.count == 0 || shard.index == 0 || shard.index > shard.count)
    throw ConfigError("--shard: must be i/n with 1 <= i <= n, such as 2/8, is '" + text + "'");
  return shard;
}

}  // namespace fl
