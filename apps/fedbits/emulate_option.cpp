#include "apps/fedbits/emulate_option.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>

#include "net/transport/emulated_transport.hpp"

namespace fl {

void add_emulate_option(CLI::App& command, std::string& text) {
  command.add_option("--emulate", text,
                     "conditions of an emulated network in front of this process: 'bandwidth=10M latency=50ms jitter=10ms stall=0.01:2s "
                     "reset=0.001 half_open=0.001 burst=16K seed=1'; see docs/protocol.md");
}

std::shared_ptr<net::Transport> with_emulation(const std::string& text, std::shared_ptr<net::Transport> transport, std::uint32_t place) {
  if (text.empty()) return transport;
  const net::NetworkConditions conditions = net::parse_network_conditions(text);
  spdlog::info("the network is emulated: {}", text);
  return net::emulated_transport(transport ? std::move(transport) : net::plain_transport(), conditions, place);
}

}  // namespace fl
