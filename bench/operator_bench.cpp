// Sparsifying operators with error feedback against the in-place add e += g of the same size: p = e + gamma g is read, the residual written
// over e, so that 12 bytes per float32 parameter is the least traffic possible. Every repeat times the floor and all operators one after
// another on the same data; printed are medians and the ratio floor / time (1 = the limit).
//
// The second table is the other end: blocks of 20 clients with 500 float64 parameters, as convex studies have them, in ns per client.
//
//   operator_bench [parameters = 10000000] [repeats = 15]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "fl_core/buffer.hpp"
#include "fl_core/cpu/tile.hpp"
#include "fl_core/cpu/top_k.hpp"
#include "fl_core/error.hpp"
#include "fl_core/random.hpp"
#include "fl_core/registry.hpp"

namespace {

using namespace fl;
using Settings = std::vector<std::pair<std::string, Value>>;

// Seconds that this thread computed: other work on the machine does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// K clients with an error and a gradient each.
template <class T>
class Bench {
 public:
  Bench(std::uint32_t clients, std::size_t parameters)
      : K(clients), P(parameters), start(K * P), error(K * P), gradient(K * P), messages(K) {
    for (std::size_t j = 0; j < K * P; ++j) {
      const std::uint64_t bits = hash64(1, j);
      start[j] = bell(static_cast<std::uint32_t>(bits));
      gradient[j] = bell(static_cast<std::uint32_t>(bits >> 32));
    }
    for (std::uint32_t k = 0; k < K; ++k) {
      ids.push_back(k);
      pointers.push_back(&messages[k]);
    }
    scope.P = P;
    scope.segments = {{0, P, P, 1}};
    exec.workspace = &workspace;
    restore();
  }

  void restore() { std::copy(start.begin(), start.end(), error.begin()); }
  [[nodiscard]] BatchView<T> view(Buffer<T>& data) { return {data.data(), nullptr, K, P, P}; }
  [[nodiscard]] Affine<T> input() {
    Affine<T> input;
    input.add(T(1), view(error)).add(T(0.1), view(gradient));
    return input;
  }
  void add_in_place() {
    T* e = error.data();
    const T* g = gradient.data();
    const std::size_t n = K * P;
    FL_IVDEP
    for (std::size_t j = 0; j < n; ++j) e[j] += g[j];
  }
  void compress(Compressor<T>& op) {
    CompressContext<T> context;
    context.round = round++;
    context.clients = ids;
    for (Payload<T>& message : messages) message.clear(P);
    op.compress(exec, context, input(), scope, StateWrite<T>{StateRule::residual, view(error)}, pointers);
  }
  [[nodiscard]] std::size_t sent() const { return messages[0].num_sent; }
  // The threshold that keeps this fraction of the parameters of p.
  [[nodiscard]] double threshold_for(double density) {
    std::vector<T> out(K);
    cpu::quantile_rows(exec, input(), scope, 1 - density, out.data());
    return static_cast<double>(out[0]);
  }

  const std::uint32_t K;
  const std::size_t P;

 private:
  // The sum of four uniform bytes: bell-shaped, in -1 .. 1.
  static T bell(std::uint32_t word) {
    int sum = -510;
    for (int b = 0; b < 4; ++b) sum += static_cast<int>(word >> (8 * b) & 255);
    return (static_cast<T>(sum) + static_cast<T>(word % 4096) / T(4096)) / T(510);
  }

  Buffer<T> start, error, gradient;
  std::vector<Payload<T>> messages;
  std::vector<Payload<T>*> pointers;
  std::vector<std::uint32_t> ids;
  Scope scope;
  Workspace workspace;
  Exec exec;
  std::uint32_t round = 0;
};

template <class T>
std::unique_ptr<Compressor<T>> make(const std::string& name, const Settings& settings) {
  Options options = Registry::instance().default_options("compressor", name);
  for (const auto& [key, value] : settings) {
    Schema schema = options.schema();
    if (const auto refused = schema.find(key)->assign(value)) throw ConfigError(name + "." + key + ": " + *refused);
  }
  return make_part<Compressor<T>>("compressor", name, options, Device::cpu, kPrecisionOf<T>);
}

template <class T>
struct Contender {
  std::string label;
  std::unique_ptr<Compressor<T>> op;  // none: the floor
  std::vector<double> times_s = {};
  std::size_t sent = 0;
};

// Times each contender once, starting from the same error vectors, repeats times over. `inner` calls make one measurement.
template <class T>
void measure(Bench<T>& bench, std::vector<Contender<T>>& contenders, int repeats, int inner) {
  for (int r = -1; r < repeats; ++r)  // the first round only warms up
    for (Contender<T>& contender : contenders) {
      bench.restore();
      const double begin = thread_seconds();
      for (int i = 0; i < inner; ++i) {
        if (contender.op == nullptr)
          bench.add_in_place();
        else
          bench.compress(*contender.op);
      }
      if (r >= 0) contender.times_s.push_back((thread_seconds() - begin) / inner);
      if (contender.op != nullptr) contender.sent = bench.sent();
    }
}

void large(std::size_t parameters, int repeats) {
  Bench<float> bench(1, parameters);
  std::vector<Contender<float>> contenders;
  contenders.push_back({"in-place add", nullptr});
  for (const double density : {0.1, 0.01, 0.001})
    contenders.push_back({"hard_threshold " + to_string(Value{density}),
                          make<float>("hard_threshold", {{"threshold", Value{bench.threshold_for(density)}}})});
  for (const double ratio : {0.1, 0.01, 0.001})
    contenders.push_back({"top_k " + to_string(Value{ratio}), make<float>("top_k", {{"ratio", Value{ratio}}})});
  contenders.push_back({"top_k k=1", make<float>("top_k", {{"k", Value{std::int64_t{1}}}})});
  contenders.push_back({"random_k 0.01", make<float>("random_k", {{"ratio", Value{0.01}}})});
  contenders.push_back({"hard_threshold 0.01 fp16", make<float>("hard_threshold", {{"threshold", Value{bench.threshold_for(0.01)}},
                                                                                   {"value_format", Value{std::string("fp16")}}})});
  contenders.push_back({"identity fp16", make<float>("identity", {{"format", Value{std::string("fp16")}}})});
  measure(bench, contenders, repeats, 1);
  const double floor_s = median(contenders[0].times_s);
  std::printf("%zu float32 parameters, one client, EF14\n%-28s %10s %10s %8s\n", parameters, "", "sent", "ms", "ratio");
  for (const auto& contender : contenders) {
    const double time_s = median(contender.times_s);
    std::printf("%-28s %10zu %10.3f %8.2f\n", contender.label.c_str(), contender.sent, 1e3 * time_s, floor_s / time_s);
  }
}

void small(int repeats) {
  Bench<double> bench(20, 500);
  std::vector<Contender<double>> contenders;
  contenders.push_back({"in-place add", nullptr});
  for (const std::int64_t k : {1, 5, 50}) contenders.push_back({"top_k k=" + std::to_string(k), make<double>("top_k", {{"k", Value{k}}})});
  contenders.push_back({"hard_threshold 0.01", make<double>("hard_threshold", {{"threshold", Value{bench.threshold_for(0.01)}}})});
  contenders.push_back({"random_k k=1", make<double>("random_k", {{"k", Value{std::int64_t{1}}}})});
  measure(bench, contenders, 20 * repeats, 50);
  std::printf("\n20 clients x 500 float64 parameters, EF14\n%-28s %10s %10s\n", "", "sent", "ns/client");
  for (const auto& contender : contenders)
    std::printf("%-28s %10zu %10.1f\n", contender.label.c_str(), contender.sent, 1e9 * median(contender.times_s) / bench.K);
}

}  // namespace

int main(int argc, char** argv) {
  large(argc > 1 ? static_cast<std::size_t>(std::atoll(argv[1])) : 10'000'000, argc > 2 ? std::atoi(argv[2]) : 15);
  small(argc > 2 ? std::atoi(argv[2]) : 15);
  return 0;
}
