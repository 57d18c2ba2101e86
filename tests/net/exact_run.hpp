// A run over sockets whose server has no training rows: it reads a file of server data, and the peers alone read data sets.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/experiment/server_data.hpp"
#include "tests/net/network_run.hpp"

namespace fl::test {

// Returns the server data of a scenario, through its file.
inline ServerData server_data_through_file(const std::string& text, const std::string& data, const std::filesystem::path& file) {
  ThreadPool pool(1);
  ServerData written;
  written.add(parse_cells(text, "test.toml"), DataCatalog(data), pool);
  const std::vector<std::byte> bytes = written.bytes();
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return ServerData::read(file);
}

// Plays the scenario with one peer for each text of ids. The peers read `data`; the server reads `known` alone.
inline NetworkRun run_without_rows(const std::string& text, const std::vector<std::string>& hosted, const ServerData& known,
                                   const std::string& data, const std::string& data_of_server) {
  NetworkRun run;
  run.peer_errors.resize(hosted.size());
  std::vector<std::thread> peers;
  std::atomic<bool> has_failed = false;
  {
    net::PeerHub hub({});
    net::RemoteSource clients(hub, [&has_failed] { return !has_failed; });
    for (std::size_t i = 0; i < hosted.size(); ++i) {
      peers.emplace_back([&, i] {
        try {
          static_cast<void>(
              net::join_server({.port = hub.port(), .clients = net::parse_client_ranges(hosted[i]), .machine = {.data = data}}, {}));
        } catch (const std::exception& error) {
          run.peer_errors[i] = error.what();
          has_failed = true;
        }
      });
    }
    try {
      CellRunner runner(DataCatalog(data_of_server), {.threads = 2, .source = &clients, .server_data = &known});
      run.result = runner.run(cell_of(text), [](const RoundRow&) { return true; });
    } catch (const std::exception& error) {
      run.error = error.what();
    }
    run.counts = hub.counts();
    run.traffic = clients.traffic();
  }
  for (std::thread& peer : peers) peer.join();
  return run;
}

// Compares what a store keeps of a run, bit by bit.
inline void expect_same_record(const RunRecord& simulated, const RunRecord& network) {
  EXPECT_EQ(simulated.checksum, network.checksum);
  EXPECT_EQ(simulated.split_hash, network.split_hash);
  EXPECT_EQ(simulated.status, network.status);
  EXPECT_EQ(simulated.message, network.message);
  const auto same = [](double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); };
  EXPECT_TRUE(same(simulated.f_star, network.f_star)) << simulated.f_star << " and " << network.f_star;
  ASSERT_EQ(simulated.constants.size(), network.constants.size());
  for (std::size_t c = 0; c < simulated.constants.size(); ++c) {
    EXPECT_EQ(simulated.constants[c].name, network.constants[c].name);
    EXPECT_TRUE(same(simulated.constants[c].value, network.constants[c].value)) << simulated.constants[c].name;
  }
}

}  // namespace fl::test
