// Whole rounds against the limit of this machine and against the bare arithmetic, in one process.
//
//   full gradient   one EF-GD iteration with Top-1 against reading the data once
//   batch 1         one EF-SGD iteration of 20 workers, ledger on, against the same arithmetic as a plain loop
//   scaling         time per round as rows and clients grow
// Usage: round_bench [threads]. Needs FEDBITS_DATA. The baselines in Python: bench/baselines.py.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/run_scenario.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Medians of interleaved repetitions: the machine's drift touches both.
struct Pair {
  double ours, floor;
};
Pair interleave(int repeats, const std::function<void()>& ours, const std::function<void()>& floor) {
  std::vector<double> a, b;
  for (int i = 0; i < repeats; ++i) {
    a.push_back(seconds_of(ours));
    b.push_back(seconds_of(floor));
  }
  return {median(a), median(b)};
}

std::string scenario(const std::string& data, int clients, const std::string& local, const std::string& more = "") {
  return "name='bench'\nrounds=1000000\nprecision='float64'\n[data]\n" + data +
         "\ntest='none'\n[partition]\nkind='contiguous'\nclients=" + std::to_string(clients) +
         "\n[model]\nkind='logistic_regression'\nbias=false\nl2=1e-4\n[local]\nkind='gradient'\n" + local +
         "\n[compressor.up]\nkind='top_k'\nk=1\nunit='step'\n[feedback.up]\nkind='ef14'\n[evaluate]\noptimum=false\n" + more;
}

volatile double g_sink = 0;

// Reads n doubles with several independent sums on each thread's part.
void read_all(fl::ThreadPool& pool, const double* data, std::size_t n) {
  const auto pieces = static_cast<std::uint32_t>(pool.num_threads());
  std::vector<double> sums(pieces);
  pool.parallel_for(pieces, [&](std::uint32_t piece, const fl::Exec&) {
    const std::size_t first = n * piece / pieces, last = n * (piece + 1) / pieces;
    double lane[64] = {};
    std::size_t j = first;
    for (; j + 64 <= last; j += 64)
      for (int l = 0; l < 64; ++l) lane[l] += data[j + static_cast<std::size_t>(l)];
    for (const double value : lane) sums[piece] += value;
  });
  for (const double sum : sums) g_sink = g_sink + sum;
}

void full_gradient_row(const char* name, const std::string& data, const char* floor_name, int threads, double floor_target) {
  fl::test::OneRun<double> run(scenario(data, 20, "learning_rate=1e-6"), {.threads = threads});
  const auto& train = run.problem().train();
  std::uint32_t round = 0;
  const bool sparse = train.is_sparse;
  // The limit reads the dense matrix, or a CSR matrix with a double and a 32-bit column for each entry (12 bytes).
  const std::vector<double> csr(sparse ? train.sparse.column.size() * 3 / 2 : 0, 1.0);
  const double* words = sparse ? csr.data() : train.dense.data();
  const std::size_t count = sparse ? csr.size() : train.dense.size();
  const int rounds = 8;
  const Pair t = interleave(
      41, [&] { run.play(round + 1, round + rounds), round += rounds; },
      [&] {
        for (int i = 0; i < rounds; ++i) read_all(run.pool(), words, count);
      });
  std::printf("%-34s %d thread%s  %9.1f us  floor %9.1f us (%s)  ratio %.2f  (goal %.2f)\n", name, threads, threads > 1 ? "s" : " ",
              t.ours / rounds * 1e6, t.floor / rounds * 1e6, floor_name, t.floor / t.ours, floor_target);
}

// The arithmetic of EC-SGD with Top-1 and nothing else, as a user would write it in a plain loop.
struct BareEcSgd {
  const fl::Dataset<double>& data;
  std::size_t n = 20, m_i = 100, d = 500;
  double gamma = 1e-6, l2 = 1e-4;
  std::vector<double> x = std::vector<double>(500, 0.0), e = std::vector<double>(20 * 500, 0.0), step = std::vector<double>(500, 0.0);
  std::uint64_t random = 88172645463325252ull;

  void iterate() {
    std::fill(step.begin(), step.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      const std::size_t row = i * m_i + random % m_i;
      const double *a = data.dense_row(row), y = data.label[row] > 0 ? 1.0 : -1.0;
      double z = 0;
#pragma omp simd reduction(+ : z)
      for (std::size_t j = 0; j < d; ++j) z += a[j] * x[j];
      const double s = -y / (1 + std::exp(y * z));
      double* error = &e[i * d];
      double largest = 0;
#pragma omp simd reduction(max : largest)
      for (std::size_t j = 0; j < d; ++j) {
        error[j] += gamma * (s * a[j] + l2 * x[j]);
        largest = std::max(largest, std::fabs(error[j]));
      }
      std::size_t best = 0;
      while (std::fabs(error[best]) != largest) ++best;
      step[best] += error[best] / static_cast<double>(n);
      error[best] = 0;
    }
    for (std::size_t j = 0; j < d; ++j) x[j] -= step[j];
  }
};

void batch_one_row() {
  fl::test::OneRun<double> run(scenario("name='libsvm/madelon'", 20, "batch=1\nlearning_rate=1e-6"));
  BareEcSgd bare{run.problem().train()};
  std::uint32_t round = 0;
  const int rounds = 500;
  const Pair t = interleave(
      41, [&] { run.play(round + 1, round + rounds), round += rounds; },
      [&] {
        for (int i = 0; i < rounds; ++i) bare.iterate();
      });
  std::printf("%-34s 1 thread   %9.2f us  bare  %9.2f us (plain loop)   ours/bare %.2f  (goal at most 1.5)\n",
              "madelon batch-1 EF-SGD, 20 clients", t.ours / rounds * 1e6, t.floor / rounds * 1e6, t.ours / t.floor);
}

// Sparse data: no bare loop, the baseline is scipy (bench/baselines.py).
void sparse_batch_one_row(const char* name, const std::string& data) {
  fl::test::OneRun<double> run(scenario(data, 20, "batch=1\nlearning_rate=1e-3"));
  std::uint32_t round = 0;
  const int rounds = 500;
  const Pair t = interleave(
      41, [&] { run.play(round + 1, round + rounds), round += rounds; }, [] {});
  std::printf("%-34s 1 thread   %9.2f us\n", name, t.ours / rounds * 1e6);
}

void scaling_rows() {
  for (const int clients : {10, 100, 1000, 10000}) {
    fl::test::OneRun<double> run(scenario("name='libsvm/a9a'\nrows=30000", clients, "learning_rate=1e-3"));
    std::uint32_t round = 0;
    const Pair t = interleave(
        15, [&] { run.play(round + 1, round + 2), round += 2; }, [] {});
    std::printf("a9a 30000 rows, %5d clients     1 thread   %9.1f us per round, %7.2f us per client\n", clients, t.ours / 2 * 1e6,
                t.ours / 2 * 1e6 / clients);
  }
  for (const int rows : {3000, 10000, 30000}) {
    fl::test::OneRun<double> run(scenario("name='libsvm/a9a'\nrows=" + std::to_string(rows), 20, "learning_rate=1e-3"));
    std::uint32_t round = 0;
    const Pair t = interleave(
        31, [&] { run.play(round + 1, round + 4), round += 4; }, [] {});
    std::printf("a9a %5d rows, 20 clients        1 thread   %9.1f us per round, %7.2f ns per row\n", rows, t.ours / 4 * 1e6,
                t.ours / 4 * 1e9 / rows);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  for (int t = 1; t <= threads; t += std::max(1, threads - 1)) {
    full_gradient_row("madelon full gradient, 20 clients", "name='libsvm/madelon'", "read A once", t, 0.7);
    full_gradient_row("a9a full gradient, 20 clients", "name='libsvm/a9a'\nrows=32560", "read a CSR matrix once", t, 0.7);
    full_gradient_row("w8a full gradient, 20 clients", "name='libsvm/w8a'\nrows=49740", "read a CSR matrix once", t, 0.7);
  }
  batch_one_row();
  sparse_batch_one_row("a9a batch-1 EF-SGD, 20 clients", "name='libsvm/a9a'\nrows=32560");
  sparse_batch_one_row("w8a batch-1 EF-SGD, 20 clients", "name='libsvm/w8a'\nrows=49740");
  scaling_rows();
}
