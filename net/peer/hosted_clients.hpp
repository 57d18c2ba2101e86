// The clients that a peer hosts: the client side of a run, built only from the scenario and their data, with a replica of the shared
// state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/state/archive.hpp"
#include "fl_core/state/state_pager.hpp"
#include "net/wire/client_ranges.hpp"
#include "net/wire/frame.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/experiment/server_data.hpp"

namespace fl::net {

// Settings of the peer's machine.
struct HostOptions {
  std::string data;  // folder of data sets
  // Files and folders outside of `data` that the server's scenario may name.
  std::vector<std::filesystem::path> also_read{};
  MemoryLimit memory{};  // of a data set
  int threads = 1;
  StatePaging paging{};
  std::shared_ptr<const ServerData> shard{};  // the rows of the hosted clients, instead of a data set; null = none
};

// Takes frames that are to be sent.
using FrameSink = std::function<void(std::vector<OutgoingFrame>)>;

class HostedClients {
 public:
  virtual ~HostedClients() = default;

  // Returns the hash of the rows of all clients, as this peer computes it.
  [[nodiscard]] virtual std::uint64_t split_hash() const = 0;
  // Returns the hashes of what the rows of the hosted clients contain, in ascending order.
  [[nodiscard]] virtual std::vector<std::uint64_t> row_hashes() const = 0;
  // All of the following functions throw ProtocolError for a frame that does not fit the run.
  // Opens a round with its cohort, the model and the shared slots.
  virtual void open(const Frame& frame) = 0;
  // Lets the clients compute, or continue with received means. Sends the messages of the next phase as soon as those of a block of clients
  // are written, and then, in the last phase, the measures. `send` is called from any thread.
  virtual void exchange(const FrameSink& send) = 0;
  // Receives the mean of a phase. Returns whether all means that the next phase needs have arrived.
  [[nodiscard]] virtual bool learn_mean(const Frame& frame) = 0;
  // Returns the sums of the rows of those clients that a measure asks for.
  [[nodiscard]] virtual std::vector<OutgoingFrame> measure(const Frame& frame) = 0;
  // Closes the round: client state changes only now. Returns the requested error memories.
  [[nodiscard]] virtual std::vector<OutgoingFrame> close(const Frame& frame) = 0;

  // Writes or reads everything that later rounds need. Call it between rounds; reading needs new clients. Throws ArchiveError, StoreError.
  virtual void persist(Archive& archive) = 0;
  // page_file() returns the file that the written state refers to, "" = none. commit_checkpoint() tells that the state is on disk.
  [[nodiscard]] virtual std::string page_file() = 0;
  virtual void commit_checkpoint() = 0;
};

// Returns the clients of a run. `scenario` is its resolved text, `run` the hash of that text. Throws ProtocolError for a text with another
// hash, and ConfigError or DataError if data or parts are not available on this machine.
[[nodiscard]] std::unique_ptr<HostedClients> host_clients(const std::string& scenario, std::uint64_t run,
                                                          const std::vector<ClientRange>& clients, const HostOptions& options);

}  // namespace fl::net
