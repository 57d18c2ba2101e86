#include "scenarios/report/split_picture.hpp"

#include <algorithm>
#include <exception>
#include <map>

#include "fl_core/state/checksum.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/partitioners/skew.hpp"

namespace fl {
namespace {

template <class T>
void count_rows(SplitPicture& picture, const FederatedProblem<T>& problem) {
  const Dataset<T>& data = problem.train();
  if (data.num_classes == 0) {
    picture.missing = "the data have no classes";
    return;
  }
  if (data.num_classes > kMostPicturedClasses) {
    picture.missing = std::to_string(data.num_classes) + " classes are too many to draw";
    return;
  }
  picture.classes = data.class_names;
  for (std::size_t c = picture.classes.size(); c < data.num_classes; ++c) picture.classes.push_back(std::to_string(c));
  picture.num_clients = problem.shards().size();
  const std::span<const Shard> shown = std::span(problem.shards()).first(std::min(picture.num_clients, kMostPicturedClients));
  for (ClientSkew& client : measure_clients(shown, data.label, data.num_classes)) picture.rows.push_back(std::move(client.of_class));
}

template <class T>
void split_again(SplitPicture& picture, const Scenario& scenario, const DataCatalog& catalog, const std::string& stored_hash) {
  ThreadPool pool(1);
  const FederatedProblem<T> problem(scenario, catalog, pool);
  if (to_hex(problem.split_hash()) == stored_hash)
    count_rows(picture, problem);
  else
    picture.missing = "the data found here are split otherwise than when the run was made";
}

void draw(SplitPicture& picture, const RunRecord& record, const DataCatalog& catalog) {
  try {
    const Scenario scenario = parse_cells(record.scenario, "stored scenario").at(0).scenario;
    if (scenario.precision == Precision::float64)
      split_again<double>(picture, scenario, catalog, record.split_hash);
    else
      split_again<float>(picture, scenario, catalog, record.split_hash);
  } catch (const std::exception& error) {
    picture.missing = error.what();
  }
}

}  // namespace

std::vector<SplitPicture> split_pictures(const Study& study, const DataCatalog& catalog) {
  std::vector<SplitPicture> pictures;
  std::map<std::string, std::size_t> by_hash;
  for (std::size_t p = 0; p < study.panels.size(); ++p) {
    const StudyCell& cell = study.cells[study.panels[p].cells.front()];
    const RunRecord& record = study.runs[cell.runs.front()].record;
    const auto [place, is_new] = by_hash.try_emplace(record.split_hash, pictures.size());
    if (is_new && pictures.size() == kMostPictures) break;
    if (is_new) {
      pictures.push_back({.seed = record.seed});
      draw(pictures.back(), record, catalog);
    }
    pictures[place->second].panels.push_back(p);
  }
  return pictures;
}

}  // namespace fl
