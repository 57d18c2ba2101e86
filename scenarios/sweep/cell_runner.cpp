#include "scenarios/sweep/cell_runner.hpp"

#include <chrono>
#include <optional>

#include "fl_core/config/stopping.hpp"
#include "scenarios/experiment/server_data.hpp"
#include "scenarios/file/key_places.hpp"
#include "scenarios/file/mending.hpp"
#include "scenarios/results/data_text.hpp"

namespace fl {

struct CellRunner::Impl {
  Impl(std::shared_ptr<ProblemCache> cache_, MachineOptions machine_)
      : cache(std::move(cache_)), machine(std::move(machine_)), threads(std::make_unique<ThreadPool>(machine.threads)) {
    std::error_code error;
    if (machine.paging.file.folder.empty()) machine.paging.file.folder = std::filesystem::temp_directory_path(error);
  }

  template <class T>
  FederatedProblem<T>& problem(const Cell& cell, std::unique_ptr<FederatedProblem<T>>& latest) {
    const std::string key = problem_text(cell.scenario) + cell.folder.string();
    if (!latest || key != latest_key) {
      latest.reset();
      latest = machine.server_data != nullptr ? machine.server_data->problem<T>(cell, cache->catalog(), pool())
                                              : std::make_unique<FederatedProblem<T>>(cell.scenario, *cache, pool(), cell.folder);
      latest_key = key;
    }
    return *latest;
  }
  template <class T>
  RunResult run(const Cell& cell, const RoundCallback& callback, const CheckpointPlan& plan, std::unique_ptr<FederatedProblem<T>>& latest) {
    const auto started = std::chrono::steady_clock::now();
    MachineOptions own = machine;
    if (!plan.file.empty())
      own.paging.file = {.folder = plan.pages_folder(), .name = page_file_name(plan), .can_be_kept = true, .system = plan.system};
    std::optional<Experiment<T>> experiment;
    {
      const Preparation preparation("the run is prepared");
      experiment.emplace(cell, problem(cell, latest), pool(), own);
    }
    const double preparing = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    RunResult result = experiment->run(callback, plan);
    result.record.seconds += preparing;
    return result;
  }
  template <class T>
  Calibration calibrate(const Cell& cell, const Cell* later, double seconds, const std::function<bool()>& goes_on,
                        std::unique_ptr<FederatedProblem<T>>& latest) {
    const Preparation trial("the first rounds are tried");
    latest.reset();  // consecutive runs seldom share a problem
    Calibration found;
    {
      const Stopwatch preparing;
      Experiment<T> experiment(cell, problem(cell, latest), pool(), machine);
      const double prepare_s = preparing.seconds();
      found = experiment.calibrate(seconds, goes_on);
      found.prepare_s = prepare_s;
    }
    if (later == nullptr) return found;
    const Stopwatch preparing;
    const Experiment<T> experiment(*later, problem(*later, latest), pool(), machine);
    found.new_seed_s = preparing.seconds() - found.prepare_s;
    return found;
  }
  template <class T>
  CellNeed check(const Cell& cell, std::unique_ptr<FederatedProblem<T>>& latest, bool looks_for_errors) {
    const Preparation checking("the scenario is checked");
    FederatedProblem<T>& of_cell = problem(cell, latest);
    MachineOptions own = machine;
    own.looks_for_errors = looks_for_errors;
    const Experiment<T> experiment(cell, of_cell, pool(), own);
    const std::vector<Contract> contracts = experiment.contracts();
    return {.bytes = experiment.size_bytes(),
            .device = experiment.device_need(),
            .minibatch = experiment.whole_minibatch(),
            .num_dropped_rows = of_cell.num_dropped_rows(),
            .num_dropped_test_rows = of_cell.num_dropped_test_rows(),
            .data = !of_cell.has_rows()
                        ? ""
                        : data_text(of_cell.train().name, of_cell.train().num_rows, of_cell.train().num_features,
                                    of_cell.train().num_classes, of_cell.test() == nullptr ? 0 : of_cell.test_rows().size()),
            .step = experiment.step(),
            .is_absolute = std::ranges::any_of(contracts, [](const Contract& c) { return c.kappa && !c.delta; }),
            .is_contraction = std::ranges::any_of(contracts, [](const Contract& c) { return c.delta && !c.kappa; })};
  }
  void use_threads(int count) {
    latest32.reset();  // they use the previous number of threads
    latest64.reset();
    machine.threads = count;
    threads = std::make_unique<ThreadPool>(count);
  }
  ThreadPool& pool() { return *threads; }

  std::shared_ptr<ProblemCache> cache;
  MachineOptions machine;
  std::unique_ptr<ThreadPool> threads;
  std::unique_ptr<FederatedProblem<float>> latest32;
  std::unique_ptr<FederatedProblem<double>> latest64;
  std::string latest_key;
};

void StudyFacts::add(const CellNeed& need) {
  num_dropped_rows = std::max(num_dropped_rows, need.num_dropped_rows);
  num_dropped_test_rows = std::max(num_dropped_test_rows, need.num_dropped_test_rows);
  if (!need.data.empty() && std::ranges::find(data, need.data) == data.end()) data.push_back(need.data);
  if (!need.step.theorem.empty()) step_theorems.add(need.step.theorem, need.is_absolute, need.is_contraction);
}

CellRunner::CellRunner(std::shared_ptr<ProblemCache> cache, MachineOptions machine)
    : impl_(std::make_unique<Impl>(std::move(cache), std::move(machine))) {}
CellRunner::CellRunner(DataCatalog catalog, MachineOptions machine)
    : CellRunner(std::make_shared<ProblemCache>(std::move(catalog)), std::move(machine)) {}
CellRunner::~CellRunner() = default;

RunResult CellRunner::run(const Cell& cell, const RoundCallback& callback, const CheckpointPlan& plan) {
  return placing_errors(cell, [&] {
    return cell.scenario.precision == Precision::float32 ? impl_->run(cell, callback, plan, impl_->latest32)
                                                         : impl_->run(cell, callback, plan, impl_->latest64);
  });
}
void CellRunner::use_threads(int threads) { impl_->use_threads(threads); }
Calibration CellRunner::calibrate(const Cell& cell, const Cell* later, double seconds, const std::function<bool()>& goes_on) {
  return placing_errors(cell, [&] {
    return cell.scenario.precision == Precision::float32 ? impl_->calibrate(cell, later, seconds, goes_on, impl_->latest32)
                                                         : impl_->calibrate(cell, later, seconds, goes_on, impl_->latest64);
  });
}
CellNeed CellRunner::check(const Cell& cell) {
  const auto check = [this](const Cell& one, bool looks_for_errors) {
    return one.scenario.precision == Precision::float32 ? impl_->check(one, impl_->latest32, looks_for_errors)
                                                        : impl_->check(one, impl_->latest64, looks_for_errors);
  };
  Problems first;
  try {
    return check(cell, false);
  } catch (const ConfigError& error) {
    first = error.problems();
  } catch (const DataError& error) {
    first = {{key_of_data(cell.scenario.data), error.what()}};
  }
  const Problems problems = all_problems(cell.scenario, first, [&](const Scenario& scenario) {
    Cell other = cell;
    other.scenario = scenario;
    static_cast<void>(check(other, true));
  });
  throw with_places(ConfigError(problems), cell);
}

std::vector<CellNeed> CellRunner::check(const std::vector<const Cell*>& cells) {
  constexpr std::size_t kMostBadCells = 64;  // checking stops after this many bad cells
  std::vector<CellNeed> needs;
  ProblemList problems;
  std::size_t num_bad = 0;
  const Preparation checking("the runs are checked");
  for (const Cell* cell : cells) {
    check_for_stop([&] { return std::to_string(needs.size() + num_bad) + " of " + std::to_string(cells.size()); });
    try {
      needs.push_back(check(*cell));
      continue;
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) problems.add(location_of_text(problem.where), problem.message);
    }
    if (++num_bad == kMostBadCells) break;
  }
  problems.throw_if_any();
  return needs;
}

}  // namespace fl
