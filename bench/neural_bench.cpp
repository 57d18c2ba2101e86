// Local SGD steps of neural clients against the arithmetic limit of a core, in one process.
//
//   peak     fused multiply-adds in registers, float32
//   a step   minibatch gathered from pixels, forward, backward, y -= gamma g: share of the peak, by the operations that its products take
//   2 x      two clients on two threads against one on one thread, beside the same ratio of the peak
// Usage: neural_bench [repeats [part of a label]]. Needs FEDBITS_DATA (fashion-mnist). The rivals in Python: bench/rivals_torch.py.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "checks/model_cases.hpp"
#include "fl_core/thread_pool.hpp"
#include "scenarios/data/load.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of this thread on its processor: other programs of the machine do not count.
double own_seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Vec __attribute__((vector_size(kLanes * sizeof(float))));
volatile float g_sink = 0;

// Floating-point operations of one call.
constexpr double kPeakWork = 2.0 * 12 * kLanes * 2000000;
[[gnu::optimize("fp-contract=fast"), gnu::noinline]] void multiply_add() {
  Vec sum[12], a = {}, b = {};
  for (int l = 0; l < kLanes; ++l) a[l] = 0.999999f, b[l] = 1e-7f;
  for (Vec& s : sum) s = b;
  for (int i = 0; i < 2000000; ++i)
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) sum[j] = sum[j] * a + b;
  float total = 0;
  for (const Vec& s : sum) total += s[0];
  g_sink = total;
}

struct Work {
  std::string label, model;
  std::vector<std::pair<std::string, fl::Value>> options;
  std::size_t batch;
  double mega_operations;  // of the products of one step, in millions; the first layer's input needs no derivative
  int steps;               // per measurement
};

// 2 m n k for each product; a convolution counts one per output pixel.
double dense(double B, double in, double out, int products) { return 2 * B * in * out * products / 1e6; }

class Client {
 public:
  Client(const Work& work, const fl::Dataset<float>& data)
      : work_(work), model_(fl::checks::make_model<float>(work.model, work.options, data)), y_(model_->layers().size()), g_(y_.size()) {
    model_->initial(1, y_.data());
    for (std::uint32_t r = 0; r < 600; ++r) rows_.push_back(r * 7);
  }
  void run(const fl::Exec& exec) {
    const std::size_t P = y_.size();
    for (int step = 0; step < work_.steps; ++step) {
      const std::size_t first = (static_cast<std::size_t>(step) * work_.batch) % (rows_.size() - work_.batch);
      const std::span<const std::uint32_t> rows = std::span<const std::uint32_t>(rows_).subspan(first, work_.batch);
      const fl::RandomStream random(1, 0, 1, static_cast<std::uint32_t>(step));
      model_->stochastic_gradient(exec, fl::shared_view<const float>(y_.data(), 1, P), {{&rows, 1}, {&random, 1}},
                                  {g_.data(), nullptr, 1, P, P}, nullptr);
      for (std::size_t j = 0; j < P; ++j) y_[j] -= 1e-3f * g_[j];
    }
  }

 private:
  const Work& work_;
  std::unique_ptr<fl::Model<float>> model_;
  fl::Buffer<float> y_, g_;
  std::vector<std::uint32_t> rows_;
};

// Sequences of 80 characters out of 90.
fl::Dataset<float> random_text() {
  fl::Dataset<float> data;
  data.name = "text";
  data.num_rows = 600 * 7;
  data.num_features = 80;
  data.num_classes = data.vocabulary = 90;
  data.tokens.resize_discard(data.num_rows * data.num_features);
  fl::RandomSequence random(1, fl::Purpose::synthetic_data);
  for (std::int32_t& token : data.tokens) token = static_cast<std::int32_t>(random.below(90));
  for (std::size_t r = 0; r < data.num_rows; ++r) data.label.push_back(static_cast<std::int32_t>(random.below(90)));
  return data;
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 9;
  const auto data = fl::load_data<float>({.name = "fashion-mnist"}, fl::DataCatalog()).train;
  const double conv1 = 32.0 * 28 * 28 * 25 * 32 * 2 / 1e6, conv2 = 32.0 * 14 * 14 * 800 * 64 * 2 / 1e6;
  const double le1 = 32.0 * 28 * 28 * 25 * 6 * 2 / 1e6, le2 = 32.0 * 10 * 10 * 150 * 16 * 2 / 1e6;
  const auto text = random_text();
  const double lstm = dense(32 * 80, 8 + 256, 4 * 256, 3) + dense(32 * 80, 512, 4 * 256, 3) + dense(32, 256, 90, 3);
  const std::vector<Work> works = {
      {"MLP 784-200-10, batch 32", "mlp", {}, 32, dense(32, 784, 200, 2) + dense(32, 200, 10, 3), 200},
      {"2NN 784-200-200-10, batch 10", "2nn_mcmahan", {}, 10, dense(10, 784, 200, 2) + dense(10, 200, 200, 3) + dense(10, 200, 10, 3), 400},
      {"LeNet-5, batch 32",
       "lenet5",
       {},
       32,
       2 * le1 + 3 * le2 + dense(32, 400, 120, 3) + dense(32, 120, 84, 3) + dense(32, 84, 10, 3),
       20},
      {"CNN of McMahan, batch 32", "cnn_mcmahan", {}, 32, 2 * conv1 + 3 * conv2 + dense(32, 3136, 512, 3) + dense(32, 512, 10, 3), 3},
      {"char LSTM 2x256x80, batch 32", "char_lstm", {}, 32, lstm, 1},
  };
  fl::ThreadPool one(1), two(2);
  for (const Work& work : works) {
    if (argc > 2 && work.label.find(argv[2]) == std::string::npos) continue;
    const auto& rows = work.model == "char_lstm" ? text : data;
    Client a(work, rows), b(work, rows);
    Client* clients[] = {&a, &b};
    a.run(one.exec(0));
    std::vector<double> peak, step, peak2, step2;
    for (int i = 0; i < repeats; ++i) {
      peak.push_back(own_seconds_of(multiply_add));
      step.push_back(own_seconds_of([&] { a.run(one.exec(0)); }));
      peak2.push_back(seconds_of([&] { two.parallel_for(2, [](std::uint32_t, const fl::Exec&) { multiply_add(); }); }));
      step2.push_back(seconds_of([&] { two.parallel_for(2, [&](std::uint32_t k, const fl::Exec& exec) { clients[k]->run(exec); }); }));
    }
    const double gflops = kPeakWork / median(peak) / 1e9, seconds = median(step) / work.steps;
    const double scaling = 2 * median(step) / median(step2), limit = 2 * median(peak) / median(peak2);
    std::printf("%-30s %8.3f ms  %6.1f GFLOP/s of %6.1f: %.2f of the peak   2 x %.2f, the peak 2 x %.2f: %.2f\n", work.label.c_str(),
                1e3 * seconds, work.mega_operations / 1e3 / seconds, gflops, work.mega_operations / 1e3 / seconds / gflops, scaling, limit,
                scaling / limit);
  }
}
