// Gradients of logistic regression, one thread, float64 unless said: each row beside its floor or baseline of the same process.
//
//   full gradient, dense    floor: reading A once (the sum of all elements by wide vectors)
//   full gradient, CSR      baseline: plain CSR loops with a value array, as scipy's A @ x and A.T @ r do them, and a scalar sigmoid
//   batch 1, 20 clients     baseline: the bare kernel, one dot product and one scaled row per client
// Times are the least of many repetitions taken in turn with the baseline's, so that a busy machine slows both. Needs FEDBITS_DATA.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "clients/learning/model.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/cpu/machine_vector.hpp"
#include "fl_core/random/random.hpp"
#include "scenarios/data/libsvm.hpp"

namespace {

using namespace fl;

constexpr std::size_t kClients = 20;

template <class F>
double seconds(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The least time of each, taken in turn.
struct Pair {
  double ours = std::numeric_limits<double>::infinity(), other = ours;
};
template <class F, class G>
Pair least(int repetitions, const F& ours, const G& other) {
  Pair best;
  for (int i = 0; i < repetitions; ++i) {
    best.ours = std::min(best.ours, seconds(ours));
    best.other = std::min(best.other, seconds(other));
  }
  return best;
}

void print(const std::string& what, const Pair& time, double per, const char* other) {
  std::printf("%-44s %10.2f us   %-22s %10.2f us   ratio %.2f\n", what.c_str(), time.ours * 1e6 / per, other, time.other * 1e6 / per,
              time.other / time.ours);
}

// Logistic regression without bias on a LIBSVM file, its rows in 20 blocks.
template <class T>
struct RegressionBenchmark {
  explicit RegressionBenchmark(const std::string& file) {
    const char* root = std::getenv("FEDBITS_DATA");
    if (root == nullptr) throw ConfigError("model_bench needs FEDBITS_DATA, the folder that holds libsvm/");
    data = read_libsvm<T>(std::filesystem::path(root) / "libsvm" / file, file);
    Options options = Registry::instance().default_options("model", "logistic_regression");
    Schema schema = options.schema();
    if (schema.find("bias")->assign(Value{false})) throw Error("bias was refused");
    model = make_part<Model<T>>("model", "logistic_regression", options, Device::cpu, kPrecisionOf<T>);
    model->bind(data);
    model->set_regulariser(1e-4, 0);
    rows.resize(data.num_rows / kClients * kClients);
    std::iota(rows.begin(), rows.end(), 0u);
    const std::size_t each = rows.size() / kClients;
    for (std::size_t i = 0; i < kClients; ++i) shards.push_back(std::span<const std::uint32_t>(rows).subspan(i * each, each));
    for (std::size_t j = 0; j < data.num_features; ++j) x.push_back(static_cast<T>(1e-5 * std::sin(static_cast<double>(j))));
    gradients.resize(kClients * x.size());
    exec.workspace = &workspace;
  }
  void gradient(std::span<const std::span<const std::uint32_t>> of) {
    const std::size_t P = x.size();
    model->gradient(exec, shared_view<const T>(x.data(), kClients, P), of, {gradients.data(), nullptr, kClients, P, P}, nullptr);
  }

  Dataset<T> data;
  std::unique_ptr<Model<T>> model;
  std::vector<std::uint32_t> rows;
  std::vector<std::span<const std::uint32_t>> shards;
  std::vector<T> x, gradients;
  Workspace workspace;
  Exec exec;
};

volatile double sink = 0;

template <class T>
void read_once(const T* from, std::size_t n) {
  using Vec = cpu::Vec<T>;
  constexpr std::size_t kWidth = cpu::kVector<T>;
  Vec part[8] = {};
  for (std::size_t i = 0; i + 8 * kWidth <= n; i += 8 * kWidth) {
    for (std::size_t u = 0; u < 8; ++u) part[u] += cpu::load(from + i + u * kWidth);
  }
  T total = 0;
  for (const Vec& v : part) total += v[0] + v[kWidth - 1];
  sink = sink + static_cast<double>(total);
}

// One dot product and one scaled row per client; four sums, as a compiler makes of a plain loop that it may reorder.
template <class T>
void bare_batch_one(const RegressionBenchmark<T>& p, const std::uint32_t* pick, T* out) {
  using Vec = cpu::Vec<T>;
  constexpr std::size_t kWidth = cpu::kVector<T>;
  const std::size_t D = p.x.size();
  for (std::size_t k = 0; k < kClients; ++k, out += D) {
    const T* a = p.data.dense_row(pick[k]);
    Vec part[4] = {};
    std::size_t j = 0;
    for (; j + 4 * kWidth <= D; j += 4 * kWidth) {
      for (std::size_t u = 0; u < 4; ++u) part[u] += cpu::load(a + j + u * kWidth) * cpu::load(p.x.data() + j + u * kWidth);
    }
    const Vec all = (part[0] + part[1]) + (part[2] + part[3]);
    T z = 0;
    for (std::size_t i = 0; i < kWidth; ++i) z += all[i];
    for (; j < D; ++j) z += a[j] * p.x[j];
    const T c = z * T(1e-3);
    for (j = 0; j < D; ++j) out[j] = c * a[j] + T(1e-4) * p.x[j];
  }
}

// The full gradient of all clients by plain CSR loops.
struct PlainCsr {
  explicit PlainCsr(const RegressionBenchmark<double>& problem)
      : p(problem), value(problem.data.sparse.column.size(), 1.0), margin(problem.rows.size()) {
    if (!p.data.sparse.value.empty()) std::copy(p.data.sparse.value.begin(), p.data.sparse.value.end(), value.begin());
  }
  void margins(std::span<const std::uint32_t> shard) {
    for (const auto r : shard) {
      double z = 0;
      for (auto i = p.data.sparse.row_begin[r]; i < p.data.sparse.row_begin[r + 1]; ++i) z += value[i] * p.x[p.data.sparse.column[i]];
      margin[r] = z;
    }
  }
  [[nodiscard]] double sign(std::uint32_t r) const { return p.data.label[r] == 1 ? 1 : -1; }
  double loss() {
    margins(p.rows);
    double total = 0;
    for (const auto r : p.rows) total += std::max(-sign(r) * margin[r], 0.0) + std::log1p(std::exp(-std::abs(margin[r])));
    return total;
  }
  void gradient(double* out) {
    const std::size_t D = p.x.size();
    const auto& begin = p.data.sparse.row_begin;
    const auto& column = p.data.sparse.column;
    for (const auto& shard : p.shards) {
      margins(shard);
      for (const auto r : shard) margin[r] = -sign(r) / (1 + std::exp(sign(r) * margin[r])) / static_cast<double>(shard.size());
      for (std::size_t j = 0; j < D; ++j) out[j] = 1e-4 * p.x[j];
      for (const auto r : shard)
        for (auto i = begin[r]; i < begin[r + 1]; ++i) out[column[i]] += value[i] * margin[r];
      out += D;
    }
  }
  const RegressionBenchmark<double>& p;
  std::vector<double> value, margin;
};

template <class T>
void dense_rows(const char* precision) {
  RegressionBenchmark<T> p("madelon");
  print(std::string("madelon full gradient, ") + precision,
        least(
            300, [&] { p.gradient(p.shards); }, [&] { read_once(p.data.dense.data(), p.data.dense.size()); }),
        1, "read A once");
  print(std::string("madelon loss, ") + precision,
        least(
            300, [&] { sink = sink + p.model->loss_sum(p.exec, p.x.data(), p.data, p.rows, nullptr); },
            [&] { read_once(p.data.dense.data(), p.data.dense.size()); }),
        1, "read A once");

  constexpr std::size_t kSteps = 40;
  RandomSequence random(1, Purpose::minibatch);
  std::vector<std::uint32_t> pick(kSteps * kClients);
  for (std::size_t i = 0; i < pick.size(); ++i) pick[i] = p.shards[i % kClients][random.below(p.shards[0].size())];
  std::vector<std::span<const std::uint32_t>> single(kClients);
  const auto ours = [&] {
    for (std::size_t s = 0; s < kSteps; ++s) {
      for (std::size_t k = 0; k < kClients; ++k) single[k] = {&pick[s * kClients + k], 1};
      p.gradient(single);
    }
  };
  const auto bare = [&] {
    for (std::size_t s = 0; s < kSteps; ++s) bare_batch_one(p, &pick[s * kClients], p.gradients.data());
  };
  print(std::string("madelon batch 1 x 20 clients, ") + precision, least(1000, ours, bare), kSteps, "bare dot + row");
}

void csr_rows(const std::string& file) {
  RegressionBenchmark<double> p(file);
  PlainCsr plain(p);
  print(file + " full gradient",
        least(
            300, [&] { p.gradient(p.shards); }, [&] { plain.gradient(p.gradients.data()); }),
        1, "plain CSR loops");
  print(
      file + " loss",
      least(
          100, [&] { sink = sink + p.model->loss_sum(p.exec, p.x.data(), p.data, p.rows, nullptr); }, [&] { sink = sink + plain.loss(); }),
      1, "plain CSR loops");
}

}  // namespace

int main() {
  try {
    dense_rows<double>("float64");
    dense_rows<float>("float32");
    csr_rows("a9a");
    csr_rows("w8a");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "model_bench: %s\n", error.what());
    return 2;
  }
  return 0;
}
