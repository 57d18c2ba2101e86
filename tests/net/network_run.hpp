// A run over sockets of this machine: the server and each peer run in separate threads and share only the connection.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fl_core/state/archive.hpp"
#include "net/peer/join_session.hpp"
#include "net/server/peer_hub.hpp"
#include "net/server/remote_clients.hpp"
#include "scenarios/experiment/record.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl::test {

inline Cell cell_of(const std::string& text) { return parse_cells(text, "test.toml").at(0); }

inline RunResult run_simulated(const std::string& text) {
  CellRunner runner(DataCatalog(""), {.threads = 1});
  return runner.run(cell_of(text), [](const RoundRow&) { return true; });
}

// Results of a run over the network.
struct NetworkRun {
  RunResult result;
  std::string error;                     // of the server; "" = none
  std::vector<std::string> peer_errors;  // of the peers, "" = none
  net::WireCounts counts;
  net::Traffic traffic;
  std::uint32_t num_connections = 0;  // of all peers
};

// The transports that carry the bytes of a run; plain TCP unless they are stated.
struct NetworkTransports {
  std::shared_ptr<net::Transport> server{};
  std::function<std::shared_ptr<net::Transport>(std::uint32_t first_client)> peer{};
  std::function<std::uint16_t(std::uint16_t server)> port_of_peers{};  // which leads to the server's, as a proxy does
  net::LinkTimes times{};
};

// Plays the scenario with one peer for each text of ids. `before_peers` is called with the port before the peers come.
inline NetworkRun run_over_network(const std::string& text, const std::vector<std::string>& hosted,
                                   const NetworkTransports& transports = {}, net::HubOptions options = {},
                                   const std::function<void(std::uint16_t port)>& before_peers = {}) {
  NetworkRun run;
  run.peer_errors.resize(hosted.size());
  std::vector<std::thread> peers;
  std::atomic<std::uint32_t> num_connections = 0;
  std::atomic<bool> has_failed = false;  // a peer has failed, so waiting for it is pointless
  {
    options.transport = transports.server;
    net::PeerHub hub(options);
    if (before_peers) before_peers(hub.port());
    const std::uint16_t port = transports.port_of_peers ? transports.port_of_peers(hub.port()) : hub.port();
    net::RemoteSource clients(hub, [&has_failed] { return !has_failed; });
    for (std::size_t i = 0; i < hosted.size(); ++i) {
      peers.emplace_back([&, i] {
        try {
          net::JoinOptions peer{.port = port, .clients = net::parse_client_ranges(hosted[i]), .times = transports.times};
          if (transports.peer) peer.transport = transports.peer(peer.clients.front().first);
          static_cast<void>(net::join_server(peer, {.tell = [&](const net::JoinEvent& event) {
                                               if (event.kind == net::JoinEvent::Kind::connected) ++num_connections;
                                             }}));
        } catch (const std::exception& error) {
          run.peer_errors[i] = error.what();
          has_failed = true;
        }
      });
    }
    try {
      CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
      run.result = runner.run(cell_of(text), [](const RoundRow&) { return true; });
    } catch (const std::exception& error) {
      run.error = error.what();
    }
    run.counts = hub.counts();
    run.traffic = clients.traffic();
  }
  for (std::thread& peer : peers) peer.join();
  run.num_connections = num_connections;
  return run;
}

// Every value of every row, as bytes.
inline std::vector<std::byte> bytes_of_rows(const std::string& text, std::vector<RoundRow> rows) {
  Archive archive;
  persist(archive, rows, columns_of_measures(cell_of(text).scenario.evaluate.measures).size());
  return archive.bytes();
}

inline void expect_same_run(const std::string& text, const RunResult& simulated, const NetworkRun& network) {
  ASSERT_EQ(network.error, "");
  for (const std::string& error : network.peer_errors) EXPECT_EQ(error, "");
  EXPECT_EQ(simulated.record.checksum, network.result.record.checksum);
  ASSERT_EQ(simulated.rows.size(), network.result.rows.size());
  EXPECT_TRUE(bytes_of_rows(text, simulated.rows) == bytes_of_rows(text, network.result.rows));
  std::uint64_t up = 0, down = 0;
  for (const RoundRow& row : simulated.rows) up += row.bits_up, down += row.bits_down;
  EXPECT_EQ(8 * network.traffic.up_bytes, up) << "bits of the ledger, and bytes of payloads on sockets";
  EXPECT_EQ(8 * network.traffic.down_bytes, down) << "bits of the ledger, and bytes of payloads on sockets";
}

}  // namespace fl::test
