// The option --emulate of `serve` and `join`: the conditions of a network between this process and the others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/transport/connection.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

void add_emulate_option(CLI::App& command, std::string& text);

// Returns the transport under the conditions of the option, or the transport itself (null = plain TCP) if there are none. `place` names the
// process in the draws of faults. Throws ConfigError for a text that states no conditions.
[[nodiscard]] std::shared_ptr<net::Transport> with_emulation(const std::string& text, std::shared_ptr<net::Transport> transport,
                                                             std::uint32_t place);

}  // namespace fl
