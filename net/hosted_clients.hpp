// The clients that a peer hosts: their half of a run, assembled from the scenario and their data alone, with a replica of what is shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/state/state_pager.hpp"
#include "net/client_ranges.hpp"
#include "net/frame.hpp"
#include "scenarios/data/catalog.hpp"

namespace fl::net {

// What the peer's machine decides.
struct HostOptions {
  std::string data;  // folder of data sets
  int threads = 1;
  StatePaging paging{};
};

class HostedClients {
 public:
  virtual ~HostedClients() = default;

  // Hash of the rows of every client, as this peer finds them.
  [[nodiscard]] virtual std::uint64_t split_hash() const = 0;
  // All of the following throw ProtocolError for a frame that does not fit the run.
  // A round opens: its cohort, the model, shared slots.
  virtual void open(const Frame& frame) = 0;
  // Clients compute, or go on with what they learned. Returns their messages of the next phase, and in the last one what is measured.
  [[nodiscard]] virtual std::vector<OutgoingFrame> exchange() = 0;
  // The mean of a phase. Returns whether all means are there that the next phase needs.
  [[nodiscard]] virtual bool learn_mean(const Frame& frame) = 0;
  // The round closes: only now does client state move. Returns the error memories that are asked for.
  [[nodiscard]] virtual std::vector<OutgoingFrame> close(const Frame& frame) = 0;
};

// Returns the clients of a run. `scenario` is its resolved text, `run` the hash of that. Throws ProtocolError for a text of another hash,
// ConfigError or DataError where data or parts are not to be had here.
[[nodiscard]] std::unique_ptr<HostedClients> host_clients(const std::string& scenario, std::uint64_t run,
                                                          const std::vector<ClientRange>& clients, const HostOptions& options);

}  // namespace fl::net
