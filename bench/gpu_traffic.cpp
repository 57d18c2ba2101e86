// The bytes that kernels move for the rows of gpu_bench, counted on the emulator (preset emulator-count), with the time that they take on
// GPUs of published speed. Nothing is timed here.
//
//   gpu_traffic [all | operators | aggregation | training] [--only TEXT] [--kernels] [--counts FILE]
//
// --only: rows whose names hold the text. --kernels: what each kernel moves. --counts: writes the rows that gpu_bench predicts from, which
// are in the source tree:
//   cmake --preset emulator-count && cmake --build --preset emulator-count
//   FEDBITS_DATA=DIR build-emulator-count/bench/gpu_traffic all --counts bench/gpu_counts.inc
// Clients are few and their vectors as long as in gpu_bench, since bytes are counted per parameter.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "bench/gpu_cohort.hpp"
#include "bench/gpu_counts.hpp"
#include "bench/gpu_studies.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "server/cuda/list_sums.cuh"
#include "server/device_aggregation.hpp"
#include "tests/emulator/traffic.hpp"

namespace {

using namespace fl;
using emulator::Traffic;

bool with_kernels = false;
std::string only;
bool is_asked(const std::string& name) { return name.find(only) != std::string::npos; }

struct Line {
  std::string stage, name;
  double floor = 0, sectors = 0, moved = 0, distinct = 0, operations = 0;
  bench::Products products = bench::Products::full;
  double share = 1;  // of the peak of these products
};
std::vector<Line> lines;

// Prints a row and, where asked for, its kernels: bytes per parameter, or per client and step.
void say(Line line, const std::map<std::string, Traffic>& by_kernel, double times) {
  Traffic all;
  for (const auto& [name, traffic] : by_kernel) all += traffic;
  line.moved = static_cast<double>(all.moved()) / times;
  line.distinct = static_cast<double>(all.distinct()) / times;
  const bench::CountedRow row{line.stage.c_str(), line.name.c_str(), line.floor,    line.sectors, line.moved,
                              line.distinct,      line.operations,   line.products, line.share};
  std::printf("%-34s %12.3f %12.3f %12.3f %12.3f %7.2f %10.2f %10.4g %10.4g\n", line.name.c_str(), line.floor, line.sectors, line.moved,
              line.distinct, line.moved / line.floor, line.moved / line.sectors, 1e12 * bench::predicted_seconds(row, 1, bench::kH100),
              1e12 * bench::predicted_seconds(row, 1, bench::kH200));
  if (with_kernels)
    for (const auto& [name, traffic] : by_kernel) {
      const auto each = [times](std::uint64_t bytes) { return static_cast<double>(bytes) / times; };
      std::printf("  %-32s %6llu x  read %9.4f (asked %9.4f, distinct %9.4f)  written %9.4f (asked %9.4f, distinct %9.4f)\n", name.c_str(),
                  static_cast<unsigned long long>(traffic.launches), each(traffic.moved_read), each(traffic.requested_read),
                  each(traffic.distinct_read), each(traffic.moved_written), each(traffic.requested_written),
                  each(traffic.distinct_written));
    }
  std::fflush(stdout);
  lines.push_back(line);
}

void begin(const std::string& title, const char* unit) {
  std::printf("\n%s\n%-34s %12s %12s %12s %12s %7s %10s %10s %10s\n", title.c_str(), unit, "floor", "in sectors", "moved", "distinct",
              "ratio", "of sectors", "H100 ps", "H200 ps");
}

// Bytes of a message's buffers.
double bytes_of(const Payload<float>& message) {
  double bytes = static_cast<double>(4 * message.counts.size() + 4 * message.index.size() + 4 * message.value.size() +
                                     message.level_bytes.size() + 4 * message.scale.size() + 4 * message.excluded.size());
  if (message.rest != nullptr) bytes += bytes_of(*message.rest);
  return bytes;
}
double bytes_of(const bench::Cohort& cohort) {
  double bytes = 0;
  for (const Payload<float>* message : cohort.messages()) bytes += bytes_of(*message);
  return bytes / cohort.entries();
}

// Bytes of the sectors that a part of a vector's numbers lies in, drawn at random places with replacement, as are expected.
double sectors_of_draws(double parameters, double part) {
  const double sectors = parameters * sizeof(float) / emulator::kSectorBytes;
  return -std::expm1(part * parameters * std::log1p(-1 / sectors)) * sectors * emulator::kSectorBytes;
}

// Bytes of the sectors that a stretch lies in.
double sectors_of_stretch(const void* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / emulator::kSectorBytes,
             last = (reinterpret_cast<std::uintptr_t>(begin) + bytes - 1) / emulator::kSectorBytes;
  return bytes == 0 ? 0 : static_cast<double>((last - first + 1) * emulator::kSectorBytes);
}

// Bytes of the sectors that blocks read of lists which they sum part by part: of each list those in which the positions and the values of
// the part lie, and its description.
double sectors_of_lists(const std::vector<const Payload<float>*>& messages, std::size_t length) {
  std::size_t most = 0;
  for (const Payload<float>* message : messages) most = std::max(most, message->index.size());
  const std::size_t positions = cuda::list_part_length<float>(messages.size(), most, length);
  double bytes = 0;
  for (const Payload<float>* message : messages) {
    std::vector<std::uint32_t> index(message->index.size());
    copy_bytes(index.data(), Device::cpu, message->index.data(), message->index.device(), index.size() * sizeof(std::uint32_t));
    for (std::size_t begin = 0; begin < length; begin += positions) {
      const auto from = std::ranges::lower_bound(index, begin) - index.begin(),
                 to = std::ranges::lower_bound(index, begin + positions) - index.begin();
      const auto count = static_cast<std::size_t>(to - from);
      bytes += sectors_of_stretch(message->index.data() + from, count * sizeof(std::uint32_t)) +
               sectors_of_stretch(message->value.data() + from, count * sizeof(float)) + sizeof(cuda::SentMessage<float>);
    }
  }
  return bytes;
}

void operators() {
  bench::Cohort cohort(4, 1000000);
  begin("operators, " + cohort.text(), "bytes per parameter");
  for (const bench::Operator& one : bench::compressed_rows()) {
    if (!is_asked(one.label)) continue;
    const auto op = bench::make(one);
    const Scope scope = bench::scope_of(*op, one, cohort.P);
    cohort.restore();
    for (int warm = 0; warm < 3; ++warm) cohort.compress(*op, scope);  // what is set up once
    cohort.restore();
    (void)emulator::take_traffic();
    cohort.compress(*op, scope);
    cuda::synchronise();
    const auto by_kernel = emulator::take_traffic();
    const double floor = one.bytes + bytes_of(cohort), P = static_cast<double>(cohort.P);
    say({"operators", one.label, floor, floor + 2 * sectors_of_draws(P, one.sampled) / P}, by_kernel, cohort.entries());
  }
}

void aggregation() {
  bench::Cohort cohort(4 * kSumGroup, 100000);
  begin("aggregation, " + cohort.text(), "bytes per parameter");
  const auto sums = make_device_aggregation<float>();
  const std::vector<double> weights(cohort.K, 1.0 / cohort.K);
  std::vector<double> sum(cohort.P);
  for (const bench::Operator& one : bench::summed_rows()) {
    if (!is_asked(one.label)) continue;
    const auto op = bench::make(one);
    const Scope scope = bench::scope_of(*op, one, cohort.P);
    cohort.restore();
    cohort.compress(*op, scope);
    const std::vector<const Payload<float>*> messages = cohort.messages();
    cuda::synchronise();
    for (int warm = 0; warm < 3; ++warm) (void)sums->sum(messages, weights, scope, sum);  // what is set up once
    (void)emulator::take_traffic();
    if (!sums->sum(messages, weights, scope, sum)) throw std::runtime_error(one.label + " has no form on the GPU");
    const std::map<std::string, Traffic> traffic = emulator::take_traffic();
    const double sums_bytes = 2.0 * sizeof(double) / cohort.K;  // written, and read by the copy to the host
    const double floor = bytes_of(cohort) + sums_bytes;
    const bool are_lists = messages.front()->positions == Positions::list;
    const double sectors = are_lists ? sectors_of_lists(messages, cohort.P) / cohort.entries() + sums_bytes : floor;
    say({"aggregation", one.label, floor, sectors}, traffic, cohort.entries());
  }
}

// Returns the traffic of one round with `steps` local steps, by kernel or copy, after `warm` rounds that are not counted.
std::map<std::string, Traffic> round_of(bench::Study study, std::uint32_t steps, std::uint32_t warm) {
  const std::string given = "steps = " + std::to_string(study.steps);
  study.local.replace(study.local.find(given), given.size(), "steps = " + std::to_string(steps));
  bench::Open run(bench::text_of(study, 100));
  run.play(1, warm);
  cuda::synchronise();
  (void)emulator::take_traffic();
  run.play(1 + warm, 1);
  cuda::synchronise();
  return emulator::take_traffic();
}

// A round of `steps` steps out of one of a single step and one of two: each further step moves the same.
std::map<std::string, Traffic> round_of_more(const std::map<std::string, Traffic>& one, std::map<std::string, Traffic> two,
                                             std::uint32_t steps) {
  for (auto& [name, traffic] : two) {
    const auto found = one.find(name);
    const Traffic first = found == one.end() ? Traffic{} : found->second;
    const auto more = [steps](std::uint64_t& x, std::uint64_t of_one) { x = of_one + (steps - 1) * (x - of_one); };
    more(traffic.launches, first.launches);
    more(traffic.requested_read, first.requested_read);
    more(traffic.requested_written, first.requested_written);
    more(traffic.moved_read, first.moved_read);
    more(traffic.moved_written, first.moved_written);
    more(traffic.distinct_read, first.distinct_read);
    more(traffic.distinct_written, first.distinct_written);
  }
  return two;
}

// Reports the traffic of a client's step. At least, parameters are read and written, images are read, and outputs of layers and their
// slopes are written and read; if one kernel does all steps of a round, parameters are moved once. Rounded products have the traffic of
// full ones, because the emulator needs hours for tensor cores: their rows differ in the peak alone.
void training() {
  constexpr std::uint32_t kClients = 2, kWarm = 12;
  begin("training, batches of 32", "bytes per client and step");
  std::map<std::string, std::map<std::string, Traffic>> by_model;
  for (const bench::Study& study : bench::training_studies(kClients)) {
    if (!is_asked(study.label)) continue;
    std::map<std::string, Traffic>& traffic = by_model[study.model];
    if (study.products == "full") {
      if (study.operations > 1e9)
        traffic = round_of_more(round_of(study, 1, 1), round_of(study, 2, 1), study.steps);
      else
        traffic = round_of(study, study.steps, kWarm);
    }
    const double P = static_cast<double>(bench::Open(bench::text_of(study, 100)).P());
    const double floor = 8 * P / (study.steps_in_a_kernel ? study.steps : 1) + 4.0 * 32 * (784 + 4 * study.outputs);
    const auto products = study.products == "tf32"   ? bench::Products::tf32
                          : study.products == "bf16" ? bench::Products::bf16
                                                     : bench::Products::full;
    const double share = study.steps_in_a_kernel ? bench::kRegressionShare : bench::share_of_tiles(products);
    say({"training", study.label, floor, floor, 0, 0, study.operations, products, share}, traffic,
        static_cast<double>(kClients) * study.steps);
  }
}

void write(const std::string& file) {
  std::ofstream out(file);
  out << "// Written by gpu_traffic, which says how. Stage, row, floor, in sectors, moved, distinct, operations, products, share of the "
         "peak.\n";
  constexpr const char* kNames[] = {"full", "tf32", "bf16"};
  for (const Line& line : lines) {
    char text[400];
    std::snprintf(text, sizeof text, "{\"%s\", \"%s\", %.5g, %.5g, %.5g, %.5g, %.6g, Products::%s, %.3g},\n", line.stage.c_str(),
                  line.name.c_str(), line.floor, line.sectors, line.moved, line.distinct, line.operations,
                  kNames[static_cast<int>(line.products)], line.share);
    out << text;
  }
  if (!out.flush()) throw std::runtime_error(file + " cannot be written");
}

}  // namespace

int main(int argc, char** argv) try {
  std::string what = "all", file;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--kernels")
      with_kernels = true;
    else if (word == "--only" && i + 1 < argc)
      only = argv[++i];
    else if (word == "--counts" && i + 1 < argc)
      file = argv[++i];
    else if (word == "all" || word == "operators" || word == "aggregation" || word == "training")
      what = word;
    else {
      std::fprintf(stderr, "usage: gpu_traffic [all | operators | aggregation | training] [--only TEXT] [--kernels] [--counts FILE]\n");
      return 2;
    }
  }
  if (what == "all" || what == "operators") operators();
  if (what == "all" || what == "aggregation") aggregation();
  if (what == "all" || what == "training") training();
  if (!file.empty()) write(file);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpu_traffic: %s\n", error.what());
  return 1;
}
