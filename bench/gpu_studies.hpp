// The studies of local steps that gpu_bench times and gpu_traffic counts, and a function to run one.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fl_core/memory/cuda/memory.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace fl::bench {

struct Study {
  std::string label, data, model, local, more;
  std::uint32_t clients, cohort, steps;
  double goal_us = 0;
  std::string products = "full";
  double operations = 0;  // per client and step: matrix products forward and backward, without the gradient with respect to the images
  double outputs = 0;     // entries of all layers' outputs for one example
  bool steps_in_a_kernel = false;  // parameters stay on the chip during a round
};

[[nodiscard]] inline DataCatalog catalog() {
  const char* folder = std::getenv("FEDBITS_DATA");
  return DataCatalog(folder == nullptr ? "" : folder);
}

// A run whose parts are accessible.
class Open {
 public:
  explicit Open(const std::string& text)
      : cell_(parse_cells(text, "gpu_bench.toml").at(0)),
        pool_(static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))),
        problem_(cell_.scenario, catalog(), pool_),
        experiment_(cell_, problem_, pool_, {.threads = pool_.num_threads(), .device = Device::cuda}) {}
  void play(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t r = first; r < first + count; ++r) experiment_.round().play(r, false);
  }
  [[nodiscard]] std::size_t P() const { return problem_.P(); }

 private:
  Cell cell_;
  ThreadPool pool_;
  FederatedProblem<float> problem_;
  Experiment<float> experiment_;
};

[[nodiscard]] inline std::string text_of(const Study& study, std::uint32_t rounds) {
  const std::string clients = std::to_string(study.clients);
  return "name = 'bench'\nmatrix_products = '" + study.products + "'\nrounds = " + std::to_string(rounds) + "\n[data]\n" + study.data +
         "\n[partition]\nkind = 'shuffled'\nclients = " + clients + "\n[model]\n" + study.model + "\n[local]\n" + study.local +
         "\n[evaluate]\nevery = 1000000\ntrain_loss = false\ngradient = 'never'\noptimum = false\n" +
         (study.cohort < study.clients ? "[participation]\nkind = 'uniform'\nclients = " + std::to_string(study.cohort) + "\n" : "") +
         study.more;
}

// Batches of 32 images of Fashion-MNIST.
[[nodiscard]] inline std::vector<Study> training_studies(std::uint32_t clients) {
  const std::string images = "name = 'fashion-mnist'\ntest = 'none'\nrows = " + std::to_string(std::max<std::uint32_t>(40 * clients, 80));
  std::vector<Study> studies = {
      {"perceptron 784-200-10", images, "kind = 'mlp'\nhidden = [200]", "kind = 'sgd'\nbatch = 32\nsteps = 20\nlearning_rate = 0.01", "",
       clients, clients, 20, 1.2, "full", 64.0 * (2 * 784 * 200 + 3 * 200 * 10), 200 + 10},
      {"softmax regression 784-10", images, "kind = 'logistic_regression'", "kind = 'sgd'\nbatch = 32\nsteps = 20\nlearning_rate = 0.01",
       "", clients, clients, 20, 0.1, "full", 64.0 * 2 * 784 * 10, 0, true},
      {"CNN of McMahan, 1.66M", images, "kind = 'cnn_mcmahan'", "kind = 'sgd'\nbatch = 32\nsteps = 5\nlearning_rate = 0.01", "", clients,
       clients, 5, 25, "full", 64.0 * (2 * 784 * 25 * 32 + 3 * (196 * 25 * 32 * 64 + 3136 * 512 + 512 * 10)),
       32 * (784 + 196) + 64 * (196 + 49) + 512 + 10},
  };
  for (const std::string products : {"tf32", "bf16"})
    for (const std::size_t of : {0, 2}) {
      studies.push_back(studies[of]);
      studies.back().products = products;
      studies.back().label += ", " + products;
    }
  return studies;
}

}  // namespace fl::bench
