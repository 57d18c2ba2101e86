// Files that a process reads instead of data sets, with the facts of the training set that are not sums over clients.
//
// Server data are for a server whose clients alone have training rows (docs/protocol.md, "A server without training rows"): the test rows
// and the form of the training set, no training row and no label of one. `fedbits plan FILE --server-data OUT` writes them where the data
// are, `fedbits serve FILE --server-data OUT` reads them.
//
// A shard is for a peer ("A peer without the data set"): the rows of some clients alone. `fedbits data shard FILE --clients 0-4 --out OUT`
// writes it, `fedbits join --shard OUT` reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl {

class FL_API ServerData {
 public:
  ServerData() = default;
  // Makes a shard of these clients, which ascend.
  explicit ServerData(std::vector<std::uint32_t> clients) : clients_(std::move(clients)) {}

  // Adds what runs of these cells read. Computes the constants and the minima that they name. Throws ConfigError for a problem that a
  // server cannot play without training rows, for a client that a run does not have, and what reading data throws.
  void add(const std::vector<Cell>& cells, const DataCatalog& catalog, ThreadPool& pool);

  // Returns the problem of a cell. The catalog's folders are searched for files that the scenario names beside its data. Throws ConfigError
  // if the file has none of these tables and seeds.
  template <class T>
  [[nodiscard]] std::unique_ptr<FederatedProblem<T>> problem(const Cell& cell, const DataCatalog& catalog, ThreadPool& pool) const;

  [[nodiscard]] std::vector<std::byte> bytes() const;
  // Reads server data, or a shard. Throws DataError for a file that this program did not write, or that is damaged.
  [[nodiscard]] static ServerData read(const std::filesystem::path& file);
  [[nodiscard]] static ServerData read_shard(const std::filesystem::path& file);

  [[nodiscard]] std::size_t num_problems() const { return problems_.size(); }
  [[nodiscard]] const std::vector<std::uint32_t>& clients() const { return clients_; }  // of a shard; server data have none

 private:
  struct Entry {
    std::string key;  // problem_text()
    TrainingFacts facts;
    std::size_t data = 0;  // into data_
  };
  template <class T>
  void add_problem(const Cell& cell, ProblemCache& cache, ThreadPool& pool);
  template <class T>
  [[nodiscard]] LoadedData<T> data_of(const FederatedProblem<T>& problem, TrainingFacts& facts) const;
  void persist(Archive& archive);
  [[nodiscard]] bool is_shard() const { return !clients_.empty(); }
  static void fill(ServerData& data, const std::filesystem::path& file);

  std::vector<std::uint32_t> clients_;  // whose rows it holds
  std::vector<Entry> problems_;
  std::vector<std::vector<std::byte>> data_;  // each data set once
};

}  // namespace fl
