// A study that ends in a fraction of a second, swept by the binary in a separate folder.
#pragma once

#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "tests/support/binary.hpp"

namespace fl::test {

class StudyTest : public BinaryTest {
 protected:
  // A few runs of some milliseconds each.
  void write_study(std::size_t seeds, std::size_t rounds, const std::string& more = "") const {
    write("study.toml",
          "name = 'study'\nrounds = " + std::to_string(rounds) +
              "\nprecision = 'float64'\n[data]\nname = 'mushrooms'\nrows = 300\n[partition]\nkind = 'dirichlet_client'\nalpha = 2\nclients "
              "= 5\n"
              "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[feedback.up]\nkind = 'ef14'\n[evaluate]\nevery = 20\noptimum = false\n" +
              more + "[sweep]\nseeds = " + std::to_string(seeds) +
              "\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='top', kind='top_k', k=5}, {label='hard', kind='hard_threshold', "
              "threshold=0.01}]\n");
  }
  [[nodiscard]] Outcome sweep(std::vector<std::string> more, const std::string& out = "out") const {
    std::vector<std::string> arguments = {"sweep", "study.toml", "--out", out, "--jobs", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return fedbits(arguments);
  }
  // Everything a store holds but times and machines.
  [[nodiscard]] std::string exported(const std::string& out) const {
    const Outcome outcome = fedbits({"export", out, "--reproducible", "--runs", "runs.csv", "--rounds", "rounds.csv"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read("runs.csv") + read("rounds.csv");
  }
  [[nodiscard]] std::size_t stored(const std::string& out) const {
    return exists(out + "/results.sqlite") ? RunStore::open(folder_ / out, RunStore::Mode::read).list().size() : 0;
  }
};

}  // namespace fl::test
