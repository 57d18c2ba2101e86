// Many clients on a GPU against what the GPU can do, in one process: a copy on the device is the measure of memory.
//
//   operators    1,000 clients of 1M float32 parameters: p = e + gamma g compressed and the residual written over e, as a share of what
//                12 bytes per parameter take at the speed of the copy (ef_sign: 20, it has to know its scale first; others say theirs)
//   aggregation  sums of the messages of as many clients: all values, as a share of what 4 bytes for each take at the speed of the copy,
//   and lists
//                of 1% of the positions, 8 bytes for each entry
//   latency      a message's buffers, and a round of 10 clients of a small model, in which there is next to nothing to compute
//   training     microseconds per client and step, 256 clients, batches of 32, of whole rounds without messages: perceptron 784-200-10,
//                softmax regression, the CNN of McMahan; bench/baselines_gpu.py times PyTorch and JAX on the same GPU
//                also with products in TF32 and BF16
//   rounds       CIFAR-10: 1,000 users of 50 images (fewer users where the training set was cut), 50 in a round, 5 steps of 10 images, a
//   CNN of 1.6M parameters
//
// Beside what is measured stands what follows from the bytes that kernels move, as counted on an emulator (gpu_counts.hpp), and from the
// speed of the copy: "predicted", in the unit of the value ("predicted_ms" in JSON where that is a millisecond).
//
//   gpu_bench [all | copy | operators | aggregation | latency | training | rounds] [scale = 1] [--only TEXT] [--json]
//
// scale < 1: fewer clients and smaller vectors, to try it out. --only: the operators, sums and studies whose names contain TEXT, for a
// profiler. --json: a line of JSON for each row, for bench/gpu_check.py, instead of tables. Needs FEDBITS_DATA with fashion-mnist and
// cifar10; what is missing is said. Without a GPU it says so and ends with 3.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/gpu_cohort.hpp"
#include "bench/gpu_counts.hpp"
#include "bench/gpu_studies.hpp"
#include "bench/timing.hpp"
#include "compressors/compressor.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/ops/cuda/measured_choice.hpp"
#include "fl_core/random/random.hpp"
#include "scenarios/data/load.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "server/device_aggregation.hpp"

namespace {

using namespace fl;
using bench::median;
using Clock = std::chrono::steady_clock;

double scale = 1;
bench::Ceilings ceilings{};
std::size_t scaled(double full, double least) { return static_cast<std::size_t>(std::max(least, full * scale)); }

// ---- rows ---------------------------------------------------------------------------------------------------------------------

bool as_json = false;
std::string only;  // a part of the names of the rows that are asked for
[[nodiscard]] bool is_asked_for(const std::string& name) { return name.find(only) != std::string::npos; }
const char* stage = "";

struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  double goal = 0;         // of the share where there is one, else of the value; 0: none
  double floor_bytes = 0;  // that have to be read and written at the least; 0: not known
  double share = 0;        // of `value`: what the floor takes at the speed of the copy; 0: not known
  std::string note{};
  double predicted = 0;  // in the unit of `value`, from counted bytes and the speed of the copy; 0: nothing was counted
};

void begin_table(const char* name, const std::string& heading) {
  stage = name;
  if (!as_json) std::printf("\n%s\n", heading.c_str());
}

void say(const Row& row) {
  if (as_json) {
    nlohmann::json line = {{"stage", stage}, {"name", row.name}, {"value", row.value}, {"unit", row.unit}};
    if (row.goal > 0) line["goal"] = row.goal;
    if (row.floor_bytes > 0) line["floor_bytes"] = row.floor_bytes;
    if (row.share > 0) line["share"] = row.share;
    if (row.predicted > 0) line[row.unit == "ms" ? "predicted_ms" : "predicted"] = row.predicted;
    if (!row.note.empty()) line["note"] = row.note;
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("%-34s %10.3f %-14s", row.name.c_str(), row.value, row.unit.c_str());
    if (row.predicted > 0) std::printf(" predicted %10.3f", row.predicted);
    if (row.share > 0) std::printf(" share %5.2f", row.share);
    if (row.goal > 0) std::printf("  goal %g", row.goal);
    std::printf("%s%s\n", row.note.empty() ? "" : "  ", row.note.c_str());
  }
  std::fflush(stdout);
}

// Says why a row has no value.
void say_why(const std::string& name, const std::string& why) {
  if (as_json)
    std::printf("%s\n", nlohmann::json{{"stage", stage}, {"name", name}, {"why", why}}.dump().c_str());
  else
    std::printf("%-34s %s\n", name.c_str(), why.c_str());
  std::fflush(stdout);
}

// Says the time of a row of `entries` parameters, in milliseconds, as a share of what its floor takes at the speed of the copy.
void say_share(const bench::Operator& one, double seconds, double entries, double bytes_per_second) {
  const double bytes = one.bytes * entries;
  say({one.label, 1e3 * seconds, "ms", one.goal, bytes, bytes / bytes_per_second / seconds, "",
       1e3 * bench::predicted_seconds(stage, one.label, entries, ceilings)});
}

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
  begin_table("operators", "operators, " + cohort.text());
  for (const bench::Operator& one : bench::compressed_rows()) {
    if (!is_asked_for(one.label)) continue;
    const auto op = bench::make(one);
    const Scope scope = bench::scope_of(*op, one, cohort.P);
    cohort.restore();
    try {
      const double s = seconds_of(7, [&] { cohort.compress(*op, scope); });
      say_share(one, s, cohort.entries(), bytes_per_second);
    } catch (const Error& error) {
      say_why(one.label, error.what());
    }
  }
}

// ---- aggregation --------------------------------------------------------------------------------------------------------------

void aggregation(double bytes_per_second) {
  bench::Cohort cohort(static_cast<std::uint32_t>(scaled(1000, 2)), scaled(1e6, 1e3));
  begin_table("aggregation", "aggregation, " + cohort.text());
  const auto sums = make_device_aggregation<float>();
  const std::vector<double> weights(cohort.K, 1.0 / cohort.K);
  std::vector<double> sum(cohort.P);
  for (const bench::Operator& one : bench::summed_rows()) {
    if (!is_asked_for(one.label)) continue;
    try {
      const auto op = bench::make(one);
      const Scope scope = bench::scope_of(*op, one, cohort.P);
      cohort.restore();
      cohort.compress(*op, scope);
      const std::vector<const Payload<float>*> messages = cohort.messages();
      bool is_summed = true;
      const double s = seconds_of(7, [&] { is_summed = sums->sum(messages, weights, scope, sum) && is_summed; });
      if (is_summed)
        say_share(one, s, cohort.entries(), bytes_per_second);
      else
        say_why(one.label, "has no form on the GPU");
    } catch (const Error& error) {
      say_why(one.label, error.what());
    }
  }
}

// ---- training -------------------------------------------------------------------------------------------------------------------

constexpr std::uint32_t kWarmRounds = 12;  // until waves and ways are chosen and steps are recorded

void training() {
  const auto clients = static_cast<std::uint32_t>(scaled(256, 2));
  begin_table("training", "training, " + std::to_string(clients) + " clients, batch 32");
  for (const bench::Study& study : bench::training_studies(clients)) {
    if (!is_asked_for(study.label)) continue;
    try {
      bench::Open run(bench::text_of(study, 100));
      std::uint32_t round = 1 + kWarmRounds;
      run.play(1, kWarmRounds);
      const double s = seconds_of(5, [&] { run.play(round++, 1); });
      say({study.label, 1e6 * s / study.clients / study.steps, "us/client-step", study.goal_us, 0, 0,
           std::to_string(run.P()) + " parameters", 1e6 * bench::predicted_seconds(stage, study.label, 1, ceilings)});
    } catch (const Error& error) {
      say_why(study.label, error.what());
    }
  }
}

void latency() {
  constexpr int kMessages = 1000;
  const double s = seconds_of(5, [] {
    std::vector<Payload<float>> messages(kMessages);
    for (Payload<float>& message : messages) {
      message.place_on(Device::cuda);
      message.counts.resize_for_overwrite(10);
      message.index.resize_for_overwrite(1000);
      message.value.resize_for_overwrite(1000);
    }
  });
  begin_table("latency", "latency");
  say({"buffers of a message", 1e6 * s / kMessages, "us"});
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
    say({"a round of 10 clients", 1e6 * each / 50, "us"});
  } catch (const Error& error) {
    say_why("a round of 10 clients", error.what());
  }
}

constexpr std::uint32_t kImages = 50;  // of a user

void rounds(const std::string& products, std::uint32_t users) {
  const auto cohort = static_cast<std::uint32_t>(scaled(50, 2)), count = static_cast<std::uint32_t>(scaled(1500, 2));
  const bench::Study study = {
      "1,500 rounds, products " + products,
      "name = 'cifar10'\ntest = 'none'\nrows = " + std::to_string(kImages * users),
      "kind = 'neural_network'\nlayers = ['conv2d(32, 3, padding=1)', 'relu', 'max_pool(2)', 'conv2d(64, 3, padding=1)', 'relu', "
      "'max_pool(2)', 'dense(384)', 'relu', 'dense(classes)']",
      "kind = 'sgd'\nbatch = 10\nsteps = 5\nlearning_rate = 0.05",
      "",
      users,
      std::min(cohort, users),
      5,
      20,
      products};
  constexpr double kMost = 6;  // seconds; the time of all rounds is then that of those that were played, times as many
  bench::Open run(bench::text_of(study, count + kWarmRounds));
  run.play(1, kWarmRounds);
  const auto start = Clock::now();
  double s = 0;
  std::uint32_t done = 0;
  while (done < count && s < kMost) {
    const std::uint32_t some = std::min<std::uint32_t>(50, count - done);
    run.play(1 + kWarmRounds + done, some);
    cuda::synchronise();
    done += some;
    s = std::chrono::duration<double>(Clock::now() - start).count();
  }
  say({study.label, s * 1500 / done, "s", study.goal_us, 0, 0,
       std::to_string(done) + " rounds in " + std::to_string(s) + " s, " + std::to_string(users) + " users, " + std::to_string(run.P()) +
           " parameters"});
}

// Users of a run on CIFAR-10: as many as the training set that is here has images for. A round does the same work whatever their number.
std::uint32_t users_of_cifar() {
  const std::size_t rows = load_data<float>({.name = "cifar10", .test = "none"}, bench::catalog()).train.num_rows;
  return static_cast<std::uint32_t>(std::min<std::size_t>(scaled(1000, 4), std::max<std::size_t>(1, rows / kImages)));
}

void rounds() {
  begin_table("rounds", "rounds on CIFAR-10: users of 50 images, 50 users in a round, 5 steps of 10 images");
  for (const std::string products : {"full", "tf32"}) try {
      rounds(products, users_of_cifar());
    } catch (const Error& error) {
      say_why("1,500 rounds, products " + products, error.what());
    }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  as_json = std::erase(words, "--json") > 0;
  bool is_usable = true;
  if (const auto named = std::find(words.begin(), words.end(), "--only"); named != words.end()) {
    is_usable = named + 1 != words.end();
    if (is_usable) only = *(named + 1);
    words.erase(named, is_usable ? named + 2 : named + 1);
  }
  const std::string what = words.empty() ? "all" : words[0];
  const std::vector<std::string> known = {"all", "copy", "operators", "aggregation", "latency", "training", "rounds"};
  if (words.size() > 1) scale = std::atof(words[1].c_str());
  if (std::find(known.begin(), known.end(), what) == known.end() || words.size() > 2 || !(scale > 0) || !is_usable) {
    std::fprintf(
        stderr,
        "usage: gpu_bench [all | copy | operators | aggregation | latency | training | rounds] [scale > 0] [--only TEXT] [--json]\n");
    return 2;
  }
  if (const std::string why = cuda::why_no_device(); !why.empty()) {
    std::printf("gpu_bench: %s\n", why.c_str());
    return 3;
  }
  const double speed = copy_speed();
  ceilings = bench::ceilings_of(cuda::device_name(), speed);
  const auto is_asked = [&what](const char* name) { return what == "all" || what == name; };
  begin_table("copy", cuda::device_name());
  if (is_asked("copy") || !as_json) say({"copy on the device", speed / 1e9, "GB/s", 0, 0, 0, "read and written"});
  if (is_asked("operators")) operators(speed);
  if (is_asked("aggregation")) aggregation(speed);
  if (is_asked("latency")) latency();
  if (is_asked("training")) training();
  if (is_asked("rounds")) rounds();
  if (as_json) return 0;
  std::printf("\nways chosen by time\n");
  for (const std::string& line : cuda::measured_choices()) std::printf("%s\n", line.c_str());
  return 0;
}
