#include "scenarios/experiment/split_statistics.hpp"

#include <algorithm>

#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/file/key_places.hpp"

namespace fl {
namespace {

template <class T>
SplitStatistics measure(const Cell& cell, ProblemCache& cache, ThreadPool& pool) {
  const FederatedProblem<T> problem(cell.scenario, cache, pool, cell.folder);
  const Dataset<T>& data = problem.train();
  SplitStatistics split;
  split.seed = cell.scenario.seeds.data;
  split.hash = problem.split_hash();
  split.note = problem.split_note();
  split.classes = data.class_names;
  for (std::size_t c = split.classes.size(); c < data.num_classes; ++c) split.classes.push_back(std::to_string(c));
  split.clients = measure_clients(problem.shards(), data.label, data.num_classes);
  for (const auto& [key, label] : cell.axis_labels)
    if (key.starts_with("partition") || key.starts_with("data")) split.label += (split.label.empty() ? "" : ", ") + key + " = " + label;
  return split;
}

// Returns the first cell of each distinct split, for the smallest seed.
std::vector<const Cell*> different_splits(const std::vector<Cell>& cells, std::size_t most) {
  std::uint64_t seed = cells.front().scenario.seeds.data;
  for (const Cell& cell : cells) seed = std::min(seed, cell.scenario.seeds.data);
  std::vector<const Cell*> firsts;
  std::vector<std::string> seen;
  for (const Cell& cell : cells) {
    if (cell.scenario.seeds.data != seed || firsts.size() == most) continue;
    const std::string key = split_text(cell.scenario);
    if (std::ranges::find(seen, key) != seen.end()) continue;
    seen.push_back(key);
    firsts.push_back(&cell);
  }
  return firsts;
}

}  // namespace

std::vector<SplitStatistics> split_statistics(const std::vector<Cell>& cells, const DataCatalog& catalog, std::size_t most) {
  ProblemCache cache(catalog);
  ThreadPool pool(1);
  std::vector<SplitStatistics> splits;
  for (const Cell* cell : different_splits(cells, most))
    splits.push_back(placing_errors(*cell, [&] {
      return cell->scenario.precision == Precision::float64 ? measure<double>(*cell, cache, pool) : measure<float>(*cell, cache, pool);
    }));
  return splits;
}

SplitFile only_split(const std::vector<Cell>& cells, const DataCatalog& catalog) {
  const std::vector<const Cell*> different = different_splits(cells, 2);
  if (different.size() > 1)
    throw ConfigError("--split-file: the study has more than one split; choose one with --set, such as --set sweep.axis=[]");
  ThreadPool pool(1);
  const Cell& cell = *different.front();
  return placing_errors(cell, [&] {
    return cell.scenario.precision == Precision::float64 ? FederatedProblem<double>(cell.scenario, catalog, pool, cell.folder).split_file()
                                                         : FederatedProblem<float>(cell.scenario, catalog, pool, cell.folder).split_file();
  });
}

}  // namespace fl
