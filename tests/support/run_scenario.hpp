// A run whose parts are accessible, for tests that examine models, states and messages between rounds.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/experiment/experiment.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl::test {

template <class T>
class OneRun {
 public:
  // Builds the first cell of a scenario text without running it.
  explicit OneRun(const std::string& text, MachineOptions machine = {})
      : cell_(parse_cells(text, "test.toml").at(0)),
        pool_(machine.threads),
        problem_(cell_.scenario, DataCatalog(data_folder()), pool_),
        experiment_(std::make_unique<Experiment<T>>(cell_, problem_, pool_, machine)) {}

  Experiment<T>& operator*() { return *experiment_; }
  Experiment<T>* operator->() { return experiment_.get(); }
  FederatedProblem<T>& problem() { return problem_; }
  ThreadPool& pool() { return pool_; }

  // Plays rounds first .. last (1-based) without evaluating anything.
  void play(std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t r = first; r <= last; ++r) experiment_->round().play(r, false);
  }
  [[nodiscard]] std::vector<T> model() { return {experiment_->model().begin(), experiment_->model().end()}; }

 private:
  static std::string data_folder() {
    const char* data = std::getenv("FEDBITS_DATA");
    return data == nullptr ? "" : data;
  }
  Cell cell_;
  ThreadPool pool_;
  FederatedProblem<T> problem_;
  std::unique_ptr<Experiment<T>> experiment_;
};

}  // namespace fl::test
