#include "scenarios/experiment/start_facts.hpp"

#include "scenarios/experiment/experiment.hpp"

namespace fl {
namespace {

template <class T>
StartFacts facts_of(const Cell& cell, const DataCatalog& catalog) {
  ThreadPool pool(1);
  FederatedProblem<T> problem(cell.scenario, catalog, pool, cell.folder);
  Experiment<T> experiment(cell, problem, pool, {});
  return {static_cast<double>(problem.P()), experiment.step_size(), experiment.unit(),
          experiment.evaluator().gradient(experiment.model()).zeta_sq};
}

}  // namespace

StartFacts facts_at_start(const Cell& cell, const DataCatalog& catalog) {
  return cell.scenario.precision == Precision::float32 ? facts_of<float>(cell, catalog) : facts_of<double>(cell, catalog);
}

}  // namespace fl
