// Rounds of neural clients: against the arithmetic limit of the cores, what the simulation itself costs, and aggregation against reading.
//
//   rounds      milliseconds, on one thread and on two; two against one beside the same ratio of fused multiply-adds
//   overhead    100 clients of McMahan's 2NN with 10 local steps: the share of a round outside training, compression and aggregation
//   aggregation of their 100 x 199,210 numbers, against reading these once
// Usage: federated_bench [repeats]     needs FEDBITS_DATA (fashion-mnist)
//        federated_bench --serve       answers bench/baselines_torch.py, which interleaves PyTorch's rounds with these
#include "bench/timing.hpp"
#include "tests/support/run_scenario.hpp"

namespace {

using fl::bench::median;
using fl::bench::Seconds;
using fl::bench::seconds_of;

// Ten clients in a round, one epoch each, plain averaging: the settings of the loops in baselines_torch.py.
struct Study {
  std::string name, model;
  int clients, batch;  // of 60,000 rows
};
const std::vector<Study> kStudies = {{"2NN", "2nn_mcmahan", 100, 10}, {"LeNet", "lenet5", 100, 32}, {"CNN", "cnn_mcmahan", 600, 10}};

std::string scenario(const std::string& model, int clients, int per_round, const std::string& local) {
  return "name='bench'\nrounds=1000000\n[data]\nname='fashion-mnist'\n[partition]\nkind='shuffled'\nclients=" + std::to_string(clients) +
         "\n[model]\nkind='" + model + "'\n[local]\nkind='sgd'\nlearning_rate=0.01\n" + local +
         "\n[participation]\nkind='uniform'\nclients=" + std::to_string(per_round) +
         "\n[evaluate]\ntrain_loss=false\ngradient='never'\noptimum=false\n";
}

// A run whose rounds go on and on.
class Rounds {
 public:
  Rounds(const std::string& text, int threads, fl::RoundTimes* times = nullptr)
      : run_(text, {.threads = threads, .block = 0, .materialise = false, .times = times}) {}
  void play() {
    ++round_;
    run_.play(round_, round_);
  }
  fl::test::OneRun<float>& run() { return run_; }

 private:
  fl::test::OneRun<float> run_;
  std::uint32_t round_ = 0;
};

class Bench {
 public:
  // A round of a study, or the multiply-adds of all threads.
  Seconds measure(const std::string& name, int threads) {
    if (name == "peak") return fl::bench::peak_of(pools_.of(threads));
    auto& rounds = rounds_[{name, threads}];
    if (!rounds) {
      const auto study = std::find_if(kStudies.begin(), kStudies.end(), [&](const Study& s) { return s.name == name; });
      if (study == kStudies.end()) throw fl::ConfigError("there is no study '" + name + "'");
      rounds =
          std::make_unique<Rounds>(scenario(study->model, study->clients, 10, "epochs=1\nbatch=" + std::to_string(study->batch)), threads);
      rounds->play();
    }
    return seconds_of([&] { rounds->play(); });
  }

 private:
  std::map<std::pair<std::string, int>, std::unique_ptr<Rounds>> rounds_;
  fl::bench::Pools pools_;
};

void print_rounds(Bench& bench, int repeats) {
  for (const Study& study : kStudies) {
    std::vector<double> one, two, peak_one, peak_two;
    for (int i = 0; i < repeats; ++i) {
      one.push_back(bench.measure(study.name, 1).wall);
      peak_one.push_back(bench.measure("peak", 1).wall);
      two.push_back(bench.measure(study.name, 2).wall);
      peak_two.push_back(bench.measure("peak", 2).wall);
    }
    const double faster = median(one) / median(two), limit = 2 * median(peak_one) / median(peak_two);
    std::printf("%-6s 10 clients, one epoch   %8.1f ms, two threads %8.1f ms: %.2f times, the limit %.2f: %.2f of it\n", study.name.c_str(),
                1e3 * median(one), 1e3 * median(two), faster, limit, faster / limit);
  }
}

// Reads the numbers of all clients once, several independent sums on each thread's part.
void read_all(fl::ThreadPool& pool, const std::vector<fl::Buffer<float>>& vectors) {
  const auto pieces = static_cast<std::uint32_t>(pool.num_threads());
  std::vector<float> sums(pieces);
  pool.parallel_for(pieces, [&](std::uint32_t piece, const fl::Exec&) {
    float lane[128] = {};
    for (const auto& vector : vectors) {
      const std::size_t first = vector.size() * piece / pieces, last = vector.size() * (piece + 1) / pieces;
      for (std::size_t j = first; j + 128 <= last; j += 128)
        for (std::size_t l = 0; l < 128; ++l) lane[l] += vector[j + l];
    }
    for (const float value : lane) sums[piece] += value;
  });
  for (const float sum : sums) fl::bench::g_sink = fl::bench::g_sink + sum;
}

void print_overhead(int repeats) {
  constexpr int kClients = 100;
  for (const int threads : {1, 2}) {
    fl::RoundTimes times;
    Rounds rounds(scenario("2nn_mcmahan", kClients, kClients, "steps=10\nbatch=10"), threads, &times);
    std::vector<fl::Buffer<float>> vectors;
    for (int k = 0; k < kClients; ++k) vectors.emplace_back(rounds.run().problem().P());
    rounds.play();
    std::vector<double> training, compression, aggregation, outside, reading;
    for (int i = 0; i < repeats; ++i) {
      times = {};
      times.total_s = seconds_of([&] { rounds.play(); }).wall;
      training.push_back(times.train_s / threads / times.total_s);
      compression.push_back(times.compress_s / threads / times.total_s);
      outside.push_back((times.waiting_s(threads) + times.rest_s()) / times.total_s);
      aggregation.push_back(times.aggregate_s);
      reading.push_back(seconds_of([&] { read_all(rounds.run().pool(), vectors); }).wall);
    }
    std::printf(
        "2NN    100 clients, 10 steps, %d thread%s: training %.1f%%, compression %.1f%%, outside and waiting %.2f%% (goal below 3%%)\n",
        threads, threads > 1 ? "s" : " ", 100 * median(training), 100 * median(compression), 100 * median(outside));
    std::printf("       aggregation %.2f ms, reading its numbers once %.2f ms: %.2f of the limit (goal 0.4)\n", 1e3 * median(aggregation),
                1e3 * median(reading), median(reading) / median(aggregation));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  if (argc > 1 && std::string(argv[1]) == "--serve")
    return fl::bench::serve([&](const std::string& name, int threads, double&) { return bench.measure(name, threads); });
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 9;
  print_overhead(repeats);
  print_rounds(bench, repeats);
}
