// The file that a server reads instead of data sets when only its clients have training rows: the test rows, the form of the training set,
// and the facts of it that are not sums over clients (docs/protocol.md, "A server without training rows").
//
// `fedbits plan FILE --server-data OUT` writes it where the data are, `fedbits serve FILE --server-data OUT` reads it. It holds no training
// row and no label of one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl {

class FL_API ServerData {
 public:
  // Adds what runs of these cells read. Computes the constants and the minima that they name. Throws ConfigError for a problem that a
  // server cannot play without training rows, and what reading data throws.
  void add(const std::vector<Cell>& cells, const DataCatalog& catalog, ThreadPool& pool);

  // Returns the problem of a cell. The catalog's folders are searched for files that the scenario names beside its data. Throws ConfigError
  // if the file has none of these tables and seeds.
  template <class T>
  [[nodiscard]] std::unique_ptr<FederatedProblem<T>> problem(const Cell& cell, const DataCatalog& catalog, ThreadPool& pool) const;

  [[nodiscard]] std::vector<std::byte> bytes() const;
  // Throws DataError for a file that this program did not write, or that is damaged.
  [[nodiscard]] static ServerData read(const std::filesystem::path& file);

  [[nodiscard]] std::size_t num_problems() const { return problems_.size(); }

 private:
  struct Entry {
    std::string key;  // problem_text()
    TrainingFacts facts;
    std::size_t data = 0;  // into data_
  };
  template <class T>
  void add_problem(const Cell& cell, ProblemCache& cache, ThreadPool& pool);
  void persist(Archive& archive);

  std::vector<Entry> problems_;
  std::vector<std::vector<std::byte>> data_;  // each data set once
};

}  // namespace fl
