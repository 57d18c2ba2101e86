// Many clients on a GPU against what the GPU can do, in one process: a copy on the device is the measure of memory.
//
//   operators    1,000 clients of 1M float32 parameters: p = e + gamma g compressed and the residual written over e, as a share of what
//                12 bytes per parameter take at the speed of the copy (ef_sign: 20, it has to know its scale first; others say theirs)
//   aggregation  sums of the messages of as many clients: all values, as a share of what 4 bytes for each take at the speed of the copy,
//   and lists
//                of 1% of the positions, 8 bytes for each entry
//   latency      a message's buffers, and a round of 10 clients of a small model, in which there is next to nothing to compute
//   training     microseconds per client and step, 256 clients, batches of 32, of whole rounds without messages: perceptron 784-200-10,
//                softmax regression, the CNN of McMahan; bench/rivals_gpu.py times PyTorch and JAX on the same GPU
//                also with products in TF32 and BF16
//   rounds       CIFAR-10: 1,000 users of 50 images, 50 in a round, 5 steps of 10 images, a CNN of 1.6M parameters
//
// Beside what is measured stands what follows from the bytes that kernels move, as counted on an emulator (gpu_counts.hpp), and from the
// speed of the copy.
//
//   gpu_bench [all | operators | aggregation | latency | training | rounds] [scale = 1]      scale < 1: fewer clients and smaller vectors,
//   to try it out
// Needs FEDBITS_DATA with fashion-mnist and cifar10; what is missing is said. Without a GPU it says so and ends with 3.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bench/gpu_cohort.hpp"
#include "bench/gpu_counts.hpp"
#include "bench/gpu_studies.hpp"
#include "bench/timing.hpp"
#include "compressors/compressor.hpp"
#include "fl_core/buffer.hpp"
#include "fl_core/cuda/measured_choice.hpp"
#include "fl_core/cuda/memory.hpp"
#include "fl_core/error.hpp"
#include "fl_core/random.hpp"
#include "fl_core/registry.hpp"
#include "scenarios/experiment.hpp"
#include "server/device_aggregation.hpp"

namespace {

using namespace fl;
using bench::median;
using Clock = std::chrono::steady_clock;

double scale = 1;
bench::Ceilings ceilings{};
std::size_t scaled(double full, double least) { return static_cast<std::size_t>(std::max(least, full * scale)); }

// Seconds of work(), until the GPU has done it; the median of some after one that does not count.
template <class Work>
double seconds_of(int repeats, const Work& work) {
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i) {
    cuda::synchronise();
    const auto start = Clock::now();
    work();
    cuda::synchronise();
    if (i > 0) times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return median(times);
}

// Bytes that a copy on the device reads and writes in a second.
double copy_speed() {
  const std::size_t bytes = scaled(4e9, 1e6);
  Buffer<std::byte> a(bytes, Device::cuda), b(bytes, Device::cuda);
  const DeviceStream stream(Device::cuda);
  const double s = seconds_of(9, [&] { copy_bytes(b.data(), Device::cuda, a.data(), Device::cuda, bytes, stream.get()); });
  return 2 * static_cast<double>(bytes) / s;
}

// ---- operators ----------------------------------------------------------------------------------------------------------------

void operators(double bytes_per_second) {
  bench::Cohort cohort(static_cast<std::uint32_t>(scaled(1000, 2)), scaled(1e6, 1e3));
  std::printf("\noperators, %u clients x %zu float32 parameters\n%-34s %10s %12s %8s %6s\n", cohort.K, cohort.P, "", "ms", "predicted ms",
              "share", "goal");
  for (const bench::Operator& one : bench::compressed_rows()) {
    const auto op = bench::make(one);
    const Scope scope = bench::scope_of(*op, one, cohort.P);
    cohort.restore();
    try {
      const double s = seconds_of(7, [&] { cohort.compress(*op, scope); });
      const double least = one.bytes * cohort.entries() / bytes_per_second;
      std::printf("%-34s %10.3f %12.3f %8.2f %6s\n", one.label.c_str(), 1e3 * s,
                  1e3 * bench::predicted_seconds("operators", one.label, cohort.entries(), ceilings), least / s,
                  one.goal > 0 ? std::to_string(one.goal).substr(0, 4).c_str() : "-");
    } catch (const Error& error) {
      std::printf("%-34s %s\n", one.label.c_str(), error.what());
    }
    std::fflush(stdout);
  }
}

// ---- aggregation --------------------------------------------------------------------------------------------------------------

void aggregation(double bytes_per_second) {
  bench::Cohort cohort(static_cast<std::uint32_t>(scaled(1000, 2)), scaled(1e6, 1e3));
  std::printf("\naggregation, %u clients x %zu float32 parameters\n%-34s %10s %12s %8s %6s\n", cohort.K, cohort.P, "", "ms", "predicted ms",
              "share", "goal");
  const auto sums = make_device_aggregation<float>();
  const std::vector<double> weights(cohort.K, 1.0 / cohort.K);
  std::vector<double> sum(cohort.P);
  for (const bench::Operator& one : bench::summed_rows()) {
    try {
      const auto op = bench::make(one);
      const Scope scope = bench::scope_of(*op, one, cohort.P);
      cohort.restore();
      cohort.compress(*op, scope);
      const std::vector<const Payload<float>*> messages = cohort.messages();
      bool is_summed = true;
      const double s = seconds_of(7, [&] { is_summed = sums->sum(messages, weights, scope, sum) && is_summed; });
      const double least = one.bytes * cohort.entries() / bytes_per_second;
      if (is_summed)
        std::printf("%-34s %10.3f %12.3f %8.2f %6s\n", one.label.c_str(), 1e3 * s,
                    1e3 * bench::predicted_seconds("aggregation", one.label, cohort.entries(), ceilings), least / s,
                    one.goal > 0 ? std::to_string(one.goal).substr(0, 4).c_str() : "-");
      else
        std::printf("%-34s has no form on the GPU\n", one.label.c_str());
    } catch (const Error& error) {
      std::printf("%-34s %s\n", one.label.c_str(), error.what());
    }
    std::fflush(stdout);
  }
}

// ---- training -------------------------------------------------------------------------------------------------------------------

constexpr std::uint32_t kWarmRounds = 12;  // until waves and ways are chosen and steps are recorded

void training() {
  const auto clients = static_cast<std::uint32_t>(scaled(256, 2));
  std::printf("\ntraining, %u clients, batch 32\n%-34s %10s %14s %12s %6s\n", clients, "", "parameters", "us/client-step", "predicted us",
              "goal");
  for (const bench::Study& study : bench::training_studies(clients)) {
    try {
      bench::Open run(bench::text_of(study, 100));
      std::uint32_t round = 1 + kWarmRounds;
      run.play(1, kWarmRounds);
      const double s = seconds_of(5, [&] { run.play(round++, 1); });
      std::printf("%-34s %10zu %14.3f %12.3f %6g\n", study.label.c_str(), run.P(), 1e6 * s / study.clients / study.steps,
                  1e6 * bench::predicted_seconds("training", study.label, 1, ceilings), study.goal_us);
    } catch (const Error& error) {
      std::printf("%-34s %s\n", study.label.c_str(), error.what());
    }
    std::fflush(stdout);
  }
}

void latency() {
  constexpr int kMessages = 1000;
  const double s = seconds_of(5, [] {
    std::vector<Payload<float>> messages(kMessages);
    for (Payload<float>& message : messages) {
      message.place_on(Device::managed);
      message.counts.resize_discard(10);
      message.index.resize_discard(1000);
      message.value.resize_discard(1000);
    }
  });
  std::printf("\nlatency\n%-34s %10.2f us\n", "buffers of a message", 1e6 * s / kMessages);
  const bench::Study study = {"",
                              "kind = 'synthetic'\nclients = 10\nfeatures = 20\nclasses = 2",
                              "kind = 'mlp'\nhidden = [8]",
                              "kind = 'sgd'\nbatch = 4\nsteps = 1\nlearning_rate = 0.01",
                              "[compressor.up]\nkind = 'top_k'\nratio = 0.1\n[feedback.up]\nkind = 'ef14'\n",
                              10,
                              10,
                              1};
  try {
    bench::Open run(bench::text_of(study, 1000));
    run.play(1, 10);
    std::uint32_t round = 11;
    const double each = seconds_of(5, [&] {
      run.play(round, 50);
      round += 50;
    });
    std::printf("%-34s %10.2f us\n", "a round of 10 clients", 1e6 * each / 50);
  } catch (const Error& error) {
    std::printf("%-34s %s\n", "a round of 10 clients", error.what());
  }
}

void rounds(const std::string& products) {
  const auto clients = static_cast<std::uint32_t>(scaled(1000, 4)), cohort = static_cast<std::uint32_t>(scaled(50, 2));
  const auto count = static_cast<std::uint32_t>(scaled(1500, 2));
  const bench::Study study = {
      "",
      "name = 'cifar10'\ntest = 'none'\nrows = " + std::to_string(50 * clients),
      "kind = 'neural_network'\nlayers = ['conv2d(32, 3, padding=1)', 'relu', 'max_pool(2)', 'conv2d(64, 3, padding=1)', 'relu', "
      "'max_pool(2)', 'dense(384)', 'relu', 'dense(classes)']",
      "kind = 'sgd'\nbatch = 10\nsteps = 5\nlearning_rate = 0.05",
      "",
      clients,
      cohort,
      5,
      0,
      products};
  try {
    bench::Open run(bench::text_of(study, count + kWarmRounds));
    run.play(1, kWarmRounds);
    const auto start = Clock::now();
    run.play(1 + kWarmRounds, count);
    cuda::synchronise();
    const double s = std::chrono::duration<double>(Clock::now() - start).count();
    std::printf(
        "\nrounds: %u users x 50 images of CIFAR-10, %u in a round, 5 steps of 10 images, %zu parameters, products "
        "%s\n%u rounds in %.2f s (goal: 1500 in 20 s)\n",
        clients, cohort, run.P(), products.c_str(), count, s);
  } catch (const Error& error) {
    std::printf("\nrounds: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "all";
  if (argc > 2) scale = std::atof(argv[2]);
  if (const std::string why = cuda::why_no_device(); !why.empty()) {
    std::printf("gpu_bench: %s\n", why.c_str());
    return 3;
  }
  const double speed = copy_speed();
  ceilings = bench::ceilings_of(cuda::device_name(), speed);
  std::printf("%s\ncopy on the device: %.0f GB/s, read and written\n", cuda::device_name().c_str(), speed / 1e9);
  if (what == "all" || what == "operators") operators(speed);
  if (what == "all" || what == "aggregation") aggregation(speed);
  if (what == "all" || what == "latency") latency();
  if (what == "all" || what == "training") training();
  for (const std::string products : {"full", "tf32"})
    if (what == "all" || what == "rounds") rounds(products);
  std::printf("\nways chosen by time\n");
  for (const std::string& line : cuda::measured_choices()) std::printf("%s\n", line.c_str());
  return 0;
}
