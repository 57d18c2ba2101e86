// The network with batch normalisation of tests/fixtures/make_statistics.py, and PyTorch's results for it (tests/fixtures/statistics.txt).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/data_folder.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl::test {

inline constexpr std::size_t kRows = 11, kFeatures = 3, kUnits = 4, kWeights = 39, kStatistics = 2 * kUnits;
inline const std::string kSteps = "kind = 'sgd'\nsteps = 2\nlearning_rate = 0.5";

struct Trained {
  std::vector<double> losses, parameters;
  std::vector<double> own{}, accuracy{};  // of each client, where statistics stay with them
};

inline std::vector<double> numbers_of(const std::string& line) {
  std::istringstream words(line.substr(line.find(' ')));
  std::vector<double> numbers;
  for (double x = 0; words >> x;) numbers.push_back(x);
  return numbers;
}

inline Trained trained_by_pytorch(const std::string& name) {
  std::ifstream file(std::string(FL_SOURCE_DIR) + "/tests/fixtures/statistics.txt");
  for (std::string line; std::getline(file, line);) {
    if (line != "case " + name) continue;
    std::string losses, parameters;
    std::getline(file, losses);
    std::getline(file, parameters);
    Trained trained{numbers_of(losses), numbers_of(parameters)};
    if (std::getline(file, line) && line.starts_with("own")) {
      trained.own = numbers_of(line);
      std::getline(file, line);
      trained.accuracy = numbers_of(line);
    }
    return trained;
  }
  ADD_FAILURE() << "no case " << name;
  return {};
}

class StatisticsStudy : public DataFolderTest {
 protected:
  // The rows, the network and the start of make_statistics.py.
  [[nodiscard]] ScenarioText study(int clients = 3) const {
    std::ostringstream rows, start;
    rows.precision(17);
    start.precision(17);
    for (std::size_t r = 0; r < kRows; ++r) {
      rows << r * 7 % 11 % 3;
      const auto row = static_cast<double>(r);
      for (std::size_t j = 0; j < kFeatures; ++j)
        rows << ' ' << j + 1 << ':' << std::sin(0.37 * row + 1.3 * static_cast<double>(j)) + 0.1 * row;
      rows << '\n';
    }
    for (std::size_t j = 0; j < kWeights; ++j) start << 0.4 * std::sin(1.7 * static_cast<double>(j) + 0.3) << '\n';
    for (std::size_t s = 0; s < kStatistics; ++s) start << (s < kUnits ? 0 : 1) << '\n';
    write("rows", rows.str());
    write("start", start.str());
    ScenarioText s;
    s.data = "path = '" + (folder_ / "rows").string() + "'\ntest = 'none'\nfeatures = 3";
    s.partition = "kind = 'contiguous'\nclients = " + std::to_string(clients);
    s.model = "kind = 'neural_network'\nlayers = ['dense(4)', 'batch_norm', 'tanh', 'dense(classes)']\nloss = 'softmax_cross_entropy'";
    s.start = "kind = 'file'\npath = '" + (folder_ / "start").string() + "'";
    s.local = "kind = 'gradient'\nlearning_rate = 0.5";
    s.evaluate = "every = 1\noptimum = false\ngradient = 'never'";
    return s;
  }
  [[nodiscard]] static std::vector<double> statistics_of(const std::vector<double>& x) { return {x.begin() + kWeights, x.end()}; }
  [[nodiscard]] static std::vector<double> statistics_after(const ScenarioText& s, std::uint32_t rounds) {
    OneRun<double> run(s.str());
    run.play(1, rounds);
    return statistics_of(run.model());
  }

  void expect_as_pytorch(ScenarioText s, const std::string& name) const {
    const Trained target = trained_by_pytorch(name);
    s.rounds = static_cast<int>(target.losses.size()) - 1;
    const RunResult result = run_text(s.str()).front();
    ASSERT_EQ(result.rows.size(), target.losses.size());
    for (std::size_t r = 0; r < result.rows.size(); ++r)
      EXPECT_NEAR(result.rows[r].train_loss, target.losses[r], 1e-12) << name << ", round " << r;
    OneRun<double> run(s.str());
    run.play(1, static_cast<std::uint32_t>(s.rounds));
    const std::vector<double> x = run.model();
    ASSERT_EQ(x.size(), target.parameters.size());
    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], target.parameters[j], 1e-11) << name << ", parameter " << j;
  }
};

}  // namespace fl::test
