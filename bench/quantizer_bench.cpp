// Quantising operators against the in-place add e += g of the same size: the least traffic that error feedback can have (12 bytes per
// parameter in float32). Every repeat times the floor and all operators one after another, so that a slow moment hits all of them;
// printed are medians and the ratio floor / time (1 = the limit).
//
//   quantizer_bench [parameters = 10000000] [repeats = 15]
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
#include "fl_core/random.hpp"
#include "fl_core/registry.hpp"
#include "fl_core/workspace.hpp"

namespace {

using namespace fl;

struct Contender {
  std::string label;
  std::function<void()> run;
  std::vector<double> times_s;
};

// Seconds that this thread computed: other work on the machine does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const std::function<void()>& run) {
  const double start = thread_seconds();
  run();
  return thread_seconds() - start;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

template <class T>
struct Bench {
  explicit Bench(std::size_t P) : error(P), gradient(P) {
    RandomSequence random(1, Purpose::synthetic_data);
    for (std::size_t j = 0; j < P; ++j) {
      error[j] = static_cast<T>(random.uniform() - 0.5);
      gradient[j] = static_cast<T>(random.uniform() - 0.5);
    }
    exec.workspace = &workspace;
  }

  // EF14 around one operator: p = e + gamma g, the residual written over e.
  [[nodiscard]] Contender contender(const std::string& label, const std::string& name, std::size_t bucket,
                                    const std::vector<std::pair<std::string, Value>>& settings) {
    LayerTable table;
    table.layers.push_back({"all", 0, error.size(), 1});
    const Scope scope = make_scope(table, bucket == 0 ? ScopeKind::model : ScopeKind::bucket, bucket, {});
    Options options = Registry::instance().default_options("compressor", name);
    for (const auto& [key, value] : settings) {
      Schema schema = options.schema();
      if (const auto refused = schema.find(key)->assign(value)) throw ConfigError(name + "." + key + ": " + *refused);
    }
    std::shared_ptr<Compressor<T>> op = make_part<Compressor<T>>("compressor", name, options, Device::cpu, kPrecisionOf<T>);
    auto message = std::make_shared<Payload<T>>();
    return {label, [this, op, message, scope] { compress(*op, scope, *message); }, {}};
  }

  void compress(Compressor<T>& op, const Scope& scope, Payload<T>& message) {
    const std::size_t P = error.size();
    Affine<T> input;
    input.add(T(1), shared_view<const T>(error.data(), 1, P)).add(T(0.1), shared_view<const T>(gradient.data(), 1, P));
    const std::uint32_t client = 3;
    CompressContext<T> context;
    context.round = ++round;
    context.random_key = 42;
    context.clients = {&client, 1};
    message.clear(P);
    Payload<T>* const messages[] = {&message};
    op.compress(exec, context, input, scope, StateWrite<T>{StateRule::residual, shared_view(error.data(), 1, P)}, messages);
  }

  void add() {
    T* e = error.data();
    const T* g = gradient.data();
    for (std::size_t j = 0; j < error.size(); ++j) e[j] += g[j];
    asm volatile("" : : "r"(e) : "memory");
  }

  Buffer<T> error, gradient;
  Workspace workspace;
  Exec exec;
  std::uint32_t round = 0;
};

template <class T>
void table(std::size_t P, int repeats) {
  Bench<T> bench(P);
  std::vector<Contender> rows;
  rows.push_back({"in-place add e += g", [&] { bench.add(); }, {}});
  rows.push_back(bench.contender("qsgd s=127, bucket 512, l2", "qsgd", 512, {}));
  rows.push_back(bench.contender("qsgd s=127, bucket 512, max", "qsgd", 512, {{"norm", Value{std::string("max")}}}));
  rows.push_back(bench.contender("qsgd s=127, whole vector, l2", "qsgd", 0, {}));
  rows.push_back(bench.contender("ef_sign, whole vector", "ef_sign", 0, {}));
  rows.push_back(bench.contender("ef_sign, bucket 2048", "ef_sign", 2048, {}));
  rows.push_back(bench.contender("natural, stochastic", "natural", 0, {}));
  rows.push_back(bench.contender("natural, nearest", "natural", 0, {{"rounding", Value{std::string("nearest")}}}));
  rows.push_back(bench.contender("scaled_integer, nearest", "scaled_integer", 0, {}));
  rows.push_back(bench.contender("scaled_integer, stochastic", "scaled_integer", 0, {{"rounding", Value{std::string("stochastic")}}}));
  for (Contender& row : rows) row.run();  // memory is touched, messages have their size
  for (int r = 0; r < repeats; ++r)
    for (Contender& row : rows) row.times_s.push_back(seconds_of(row.run));
  const double floor_s = median(rows[0].times_s);
  std::printf("%zu parameters, %s, error feedback included, one thread, medians of %d\n", P, to_string(kPrecisionOf<T>), repeats);
  for (const Contender& row : rows) {
    const double s = median(row.times_s);
    std::printf("  %-32s %8.2f ms   ratio %.2f\n", row.label.c_str(), 1e3 * s, floor_s / s);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t P = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000000;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 15;
  if (P == 0 || repeats < 1) {
    std::fprintf(stderr, "usage: quantizer_bench [parameters] [repeats], both above 0\n");
    return 2;
  }
  table<float>(P, repeats);
  table<double>(P / 2, repeats);
  return 0;
}
