// Operators with error feedback against the in-place add e += g of the same size: p = e + gamma g is read and the residual written over e,
// so that 12 bytes per float32 parameter is the least traffic possible. Every repeat times the floor and all operators one after another
// on the same data; printed are medians and the ratio floor / time (1 = the limit). PowerSGD reads its input three times and has a floor
// of its own: 28 bytes per parameter, 7/3 of the add.
//
// Then two clients on two threads against one on one, and blocks of 20 clients with 500 float64 parameters, as convex studies have them.
//
//   operator_bench [parameters = 10000000] [repeats = 15]
//   operator_bench --ratios    one line "ratio<TAB>operator" for the operators above and for every registered one, for
//   bench/operator_guard.py operator_bench --serve     answers bench/baselines_operators.py, which interleaves PyTorch's operators
//   with these
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "bench/timing.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/ops/cpu/tile.hpp"
#include "fl_core/ops/cpu/top_k.hpp"
#include "fl_core/random/random.hpp"

namespace {

using namespace fl;
using bench::median;
using Settings = std::vector<std::pair<std::string, Value>>;

Value text(const char* s) { return Value{std::string(s)}; }
Value whole(std::int64_t n) { return Value{n}; }

// An operator as it is timed. Thresholds are given as the density that they have on the data.
struct Work {
  std::string label, kind;  // no kind: the floor
  Settings settings = {};
  double density = 0;
  std::size_t bucket = 0;    // 0: the whole vector
  double floor_in_adds = 1;  // what the ratio is to
  std::size_t rows = 0;      // as a matrix
};

const std::vector<Work>& large_works() {
  static const std::vector<Work> works = {
      {"in-place add", ""},
      {"hard_threshold 10%", "hard_threshold", {}, 0.1},
      {"hard_threshold 1%", "hard_threshold", {}, 0.01},
      {"hard_threshold 0.1%", "hard_threshold", {}, 0.001},
      {"hard_threshold 1% fp16", "hard_threshold", {{"value_format", text("fp16")}}, 0.01},
      {"top_k 10%", "top_k", {{"ratio", Value{0.1}}}},
      {"top_k 1%", "top_k", {{"ratio", Value{0.01}}}},
      {"top_k 0.1%", "top_k", {{"ratio", Value{0.001}}}},
      {"random_k 1%", "random_k", {{"ratio", Value{0.01}}}},
      {"random_k 0.1%", "random_k", {{"ratio", Value{0.001}}}},
      {"qsgd 127, buckets of 512", "qsgd", {}, 0, 512},
      {"qsgd 127, whole", "qsgd", {}, 0, 0},
      {"ef_sign, buckets of 2048", "ef_sign", {}, 0, 2048},
      {"ef_sign, whole", "ef_sign", {}, 0, 0},
      {"natural, stochastic", "natural", {}},
      {"natural, nearest", "natural", {{"rounding", text("nearest")}}},
      {"scaled_integer, nearest", "scaled_integer", {}},
      {"absolute_rounding", "absolute_rounding", {}},
      {"sz, previous", "sz", {}},
      {"sz, plane", "sz", {{"predictor", text("plane")}}, 0, 0, 1, 3200},
      {"zfp, line", "zfp", {}},
      {"zfp, square", "zfp", {{"block", text("square")}}, 0, 0, 1, 3200},
      {"powersgd rank 4", "powersgd", {{"rank", whole(4)}}, 0, 0, 7.0 / 3.0, 3200},
  };
  return works;
}

// K clients with an error and a gradient each.
template <class T>
class Clients {
 public:
  Clients(std::uint32_t clients, std::size_t parameters)
      : K(clients), P(parameters), start_(K * P), error_(K * P), gradient_(K * P), messages_(K) {
    for (std::size_t j = 0; j < K * P; ++j) {
      const std::uint64_t bits = hash64(1, j);
      start_[j] = bell(static_cast<std::uint32_t>(bits));
      gradient_[j] = bell(static_cast<std::uint32_t>(bits >> 32));
    }
    for (std::uint32_t k = 0; k < K; ++k) {
      ids_.push_back(k);
      pointers_.push_back(&messages_[k]);
    }
    exec_.workspace = &workspace_;
    restore();
  }

  void restore() { std::copy(start_.begin(), start_.end(), error_.begin()); }
  void add_in_place() {
    T* e = error_.data();
    const T* g = gradient_.data();
    const std::size_t n = K * P;
    FL_IVDEP
    for (std::size_t j = 0; j < n; ++j) e[j] += g[j];
  }
  // All phases of one round, in which the first client's message stands for the mean.
  // `remembered`: what the operator keeps of each client, read and overwritten [K,L].
  void compress(Conversation<T>& conversation, Buffer<T>& remembered) {
    const std::size_t L = remembered.size() / K;
    const BatchView<T> kept{remembered.data(), nullptr, K, L, L};
    for (conversation.open(round_++);;) {
      conversation.send(
          exec_, {.clients = ids_, .input = input(), .state = {StateRule::residual, view(error_)}, .remembered = kept, .remember = kept},
          pointers_);
      if (conversation.is_last()) return;
      conversation.receive({messages_[0].value.data(), messages_[0].num_sent}, {});
    }
  }
  [[nodiscard]] std::size_t sent() const { return messages_[0].num_sent; }
  // The threshold that keeps this fraction of the parameters of p.
  [[nodiscard]] double threshold_for(double density) {
    std::vector<T> out(K);
    const Scope scope = scope_of({});
    cpu::quantile_rows(exec_, input(), scope, 1 - density, out.data());
    return static_cast<double>(out[0]);
  }
  [[nodiscard]] Scope scope_of(const Work& work) const {
    LayerTable table;
    table.layers.push_back({"all", 0, work.rows == 0 ? P : work.rows, work.rows == 0 ? 1 : P / work.rows});
    const ScopeKind kind = work.rows > 0 ? ScopeKind::tensor : work.bucket == 0 ? ScopeKind::model : ScopeKind::bucket;
    Scope scope = make_scope(table, kind, work.rows > 0 ? 0 : work.bucket, {});
    scope.clients = 100;  // perm_k shares the entries out among the clients
    return scope;
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
  [[nodiscard]] BatchView<T> view(Buffer<T>& data) { return {data.data(), nullptr, K, P, P}; }
  [[nodiscard]] Affine<T> input() {
    Affine<T> input;
    input.add(T(1), view(error_)).add(T(0.1), view(gradient_));
    return input;
  }

  Buffer<T> start_, error_, gradient_;
  std::vector<Payload<T>> messages_;
  std::vector<Payload<T>*> pointers_;
  std::vector<std::uint32_t> ids_;
  Workspace workspace_;
  Exec exec_;
  std::uint32_t round_ = 0;
};

// One operator on one set of clients.
template <class T>
class Contender {
 public:
  Contender(const Work& work, Clients<T>& clients) : clients_(clients), scope_(clients.scope_of(work)) {
    if (work.kind.empty()) return;
    Options options = Registry::instance().default_options("compressor", work.kind);
    Settings settings = work.settings;
    if (work.density > 0) settings.emplace_back("threshold", Value{clients.threshold_for(work.density)});
    for (const auto& [key, value] : settings) {
      Schema schema = options.schema();
      if (const auto refused = schema.find(key)->assign(value)) throw ConfigError(work.kind + "." + key + ": " + *refused);
    }
    op_ = make_part<Compressor<T>>("compressor", work.kind, options, Device::cpu, kPrecisionOf<T>);
    scope_ = op_->adapt(scope_);
    conversation_ = std::make_unique<Conversation<T>>(*op_, scope_, 42);
    remembered_ = Buffer<T>(clients.K * op_->client_state_size(scope_));
  }
  void run() {
    if (conversation_ == nullptr)
      clients_.add_in_place();
    else
      clients_.compress(*conversation_, remembered_);
  }

 private:
  Clients<T>& clients_;
  Scope scope_;
  std::unique_ptr<Compressor<T>> op_;
  std::unique_ptr<Conversation<T>> conversation_;
  Buffer<T> remembered_;
};

// Times each work once, starting from the same error vectors, `repeats` times over. `inner` calls make one measurement. Seconds of the
// processor per call, medians.
template <class T>
std::vector<std::pair<double, std::size_t>> measure(Clients<T>& clients, const std::vector<Work>& works, int repeats, int inner) {
  std::vector<Contender<T>> contenders;
  contenders.reserve(works.size());
  for (const Work& work : works) contenders.emplace_back(work, clients);
  std::vector<std::vector<double>> times(works.size());
  std::vector<std::size_t> sent(works.size());
  for (int r = -1; r < repeats; ++r)  // the first round only warms up
    for (std::size_t w = 0; w < works.size(); ++w) {
      clients.restore();
      const double seconds = bench::seconds_of([&] {
                               for (int i = 0; i < inner; ++i) contenders[w].run();
                             }).processor;
      if (r >= 0) times[w].push_back(seconds / inner);
      sent[w] = works[w].kind.empty() ? 0 : clients.sent();
    }
  std::vector<std::pair<double, std::size_t>> results;
  for (std::size_t w = 0; w < works.size(); ++w) results.emplace_back(median(times[w]), sent[w]);
  return results;
}

template <class T>
void print_large(std::size_t parameters, int repeats) {
  Clients<T> clients(1, parameters);
  const std::vector<Work>& works = large_works();
  const auto results = measure(clients, works, repeats, 1);
  std::printf("%zu %s parameters, one client, error feedback\n%-28s %10s %10s %8s\n", parameters, to_string(kPrecisionOf<T>), "", "sent",
              "ms", "ratio");
  for (std::size_t w = 0; w < works.size(); ++w) {
    const auto& [seconds, sent] = results[w];
    std::printf("%-28s %10zu %10.3f %8.2f\n", works[w].label.c_str(), sent, 1e3 * seconds,
                works[w].floor_in_adds * results[0].first / seconds);
  }
}

// Two clients on two threads against one on one; wall clock, so other programs count.
void print_two_threads(std::size_t parameters, int repeats) {
  bench::Pools pools;
  std::vector<std::unique_ptr<Clients<float>>> clients;
  for (int k = 0; k < 2; ++k) clients.push_back(std::make_unique<Clients<float>>(1, parameters));
  std::printf("\ntwo clients on two threads, times the speed of one (wall clock)\n");
  for (const Work& work : large_works()) {
    std::vector<Contender<float>> contenders;
    contenders.reserve(clients.size());  // a conversation refers to the scope of its contender
    for (auto& own : clients) contenders.emplace_back(work, *own);
    std::vector<double> one, two;
    for (int r = -1; r < repeats; ++r)
      for (const int threads : {1, 2}) {
        for (auto& own : clients) own->restore();
        const double wall = bench::seconds_of([&] {
                              pools.of(threads).parallel_for(static_cast<std::uint32_t>(threads),
                                                             [&](std::uint32_t k, const Exec&) { contenders[k].run(); });
                            }).wall;
        if (r >= 0) (threads == 1 ? one : two).push_back(wall);
      }
    std::printf("%-28s %8.2f\n", work.label.c_str(), 2 * median(one) / median(two));
  }
}

void print_small(int repeats) {
  Clients<double> clients(20, 500);
  const std::vector<Work> works = {{"in-place add", ""},
                                   {"top_k k=1", "top_k", {{"k", whole(1)}}},
                                   {"top_k k=5", "top_k", {{"k", whole(5)}}},
                                   {"top_k k=50", "top_k", {{"k", whole(50)}}},
                                   {"hard_threshold 1%", "hard_threshold", {}, 0.01},
                                   {"random_k k=1", "random_k", {{"k", whole(1)}}}};
  const auto results = measure(clients, works, 20 * repeats, 50);
  std::printf("\n20 clients x 500 float64 parameters, error feedback\n%-28s %10s %10s\n", "", "sent", "ns/client");
  for (std::size_t w = 0; w < works.size(); ++w)
    std::printf("%-28s %10zu %10.1f\n", works[w].label.c_str(), results[w].second, 1e9 * results[w].first / clients.K);
}

// Returns the median of floor / time over interleaved turns. A turn of the operator takes 5 ms or one call, and the add's turn the same
// number of calls.
double ratio_of(const Work& work, Clients<float>& clients, int turns) {
  Contender<float> add({"in-place add", ""}, clients), contender(work, clients);
  clients.restore();
  contender.run();  // warms up
  const double once = bench::seconds_of([&] { contender.run(); }).processor;
  const int calls = std::clamp(static_cast<int>(0.005 / std::max(once, 1e-7)), 1, 1000);
  const auto turn = [&](Contender<float>& one) {
    clients.restore();
    one.run();  // the data of the previous turn leave the cache
    return bench::seconds_of([&] {
             for (int i = 0; i < calls; ++i) one.run();
           })
        .processor;
  };
  std::vector<double> ratios;
  for (int i = 0; i < turns; ++i) {
    const double floor = turn(add);
    ratios.push_back(work.floor_in_adds * floor / turn(contender));
  }
  return median(ratios);
}

// The operators of the table at a size that leaves the second-level cache, then every registered operator with its defaults on a matrix of
// 256 x 256, whose decomposition takes no seconds.
int print_ratios() {
  constexpr int kTurns = 5;
  constexpr std::size_t kLarge = 3'200'000, kRows = 256;
  Clients<float> large(1, kLarge), small(1, kRows * kRows);
  for (const Work& work : large_works())
    if (!work.kind.empty()) std::printf("%.4g\t%s\n", ratio_of(work, large, kTurns), work.label.c_str());
  for (const std::string& name : Registry::instance().names("compressor"))
    std::printf("%.4g\tdefault %s\n", ratio_of({.label = name, .kind = name, .rows = kRows}, small, kTurns), name.c_str());
  return 0;
}

// Requests name a work with '_' for every space; every operator has warmed up, and errors go on from call to call as training's do.
int serve() {
  Clients<float> clients(1, 10'000'000);
  std::map<std::string, std::unique_ptr<Contender<float>>> contenders;
  return bench::serve([&](std::string name, int, double& operations) {
    std::replace(name.begin(), name.end(), '_', ' ');
    for (const Work& work : large_works()) {
      std::string label = work.label;
      std::replace(label.begin(), label.end(), '_', ' ');
      if (label != name) continue;
      auto& contender = contenders[name];
      if (contender == nullptr) {
        contender = std::make_unique<Contender<float>>(work, clients);
        contender->run();
      }
      operations = 0;
      clients.restore();
      return bench::seconds_of([&] { contender->run(); });
    }
    throw ConfigError("no operator is called '" + name + "'");
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--serve") == 0) return serve();
  if (argc > 1 && std::strcmp(argv[1], "--ratios") == 0) return print_ratios();
  const std::size_t parameters = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 15;
  if (parameters < 3200 || repeats < 1) {
    std::fprintf(stderr, "usage: operator_bench [parameters, 3200 or more] [repeats]\n");
    return 2;
  }
  const std::size_t in_rows = parameters / 3200 * 3200;
  print_large<float>(in_rows, repeats);
  std::printf("\n");
  print_large<double>(in_rows / 6400 * 3200, repeats);
  print_two_threads(in_rows, repeats);
  print_small(repeats);
  return 0;
}
