// A program that plays the runs of a scenario file and reads their rounds: run_scenario FILE FOLDER.
#include <exception>
#include <iostream>
#include <string>

#include "study/driver/simulation.hpp"

namespace {

// Shows what happens while runs are played.
class Shown final : public fl::StudyEvents {
 public:
  void note(fl::Note, const std::string& text) override { std::cerr << text << '\n'; }
  void ended(std::size_t, const fl::RunRecord& run) override { std::cout << run.run << ' ' << fl::to_string(run.status) << '\n'; }
};

// Returns the first round whose training loss is below the level, with the bits that its run had sent until then.
std::string first_below(double level, const std::vector<fl::RoundRow>& rows) {
  std::uint64_t bits = 0;
  for (const fl::RoundRow& row : rows) {
    bits += row.bits_up;
    if (row.train_loss < level) return "round " + std::to_string(row.round) + ", " + std::to_string(bits) + " bits up";
  }
  return "never";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw fl::ConfigError("run_scenario FILE FOLDER: give a scenario file and a folder for its results");
  Shown shown;
  fl::Simulation study = fl::Simulation::open({.file = argv[1], .out = argv[2]});
  const fl::StudyOutcome outcome = study.run(shown);
  for (const fl::RunRecord& run : outcome.records)
    std::cout << run.run << ": loss below 0.5: " << first_below(0.5, study.store().rows(run.run)) << '\n';
  return outcome.end == fl::StudyEnd::done ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "run_scenario: " << error.what() << '\n';
  return 2;
}
