// The text that a peer sends its server about a failure: one of a few fixed sentences. The texts of its own errors quote its files and
// folders, which a server has no need to know, so only the peer's own output has them.
#pragma once

#include <exception>
#include <string>

#include "fl_core/config/error.hpp"

namespace fl::net {

// Reports that the rows of this machine are not those that a server has named.
class FL_API OtherRows : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

// Returns the sentence for a failure.
[[nodiscard]] FL_API std::string failure_kind(const std::exception& failure);

}  // namespace fl::net
