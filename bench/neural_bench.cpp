// Local SGD steps of neural clients against the arithmetic limit of a core, in one process.
//
//   peak     fused multiply-adds in registers, float32
//   a step   minibatch gathered from pixels, forward, backward, y -= gamma g: share of the peak, by the operations that its products take
//   2 x      two clients on two threads against one on one thread, beside the same ratio of the peak
// Usage: neural_bench [repeats [part of a label]]     needs FEDBITS_DATA (fashion-mnist)
//        neural_bench --serve     answers bench/baselines_torch.py and baselines_jax.py, which interleave their steps with these
// One thread is timed by the processor's clock, two by the wall's: the first leaves out other programs, the second needs a quiet machine.
#include "bench/timing.hpp"
#include "checks/model_cases.hpp"
#include "scenarios/data/load.hpp"

namespace {

using fl::bench::median;
using fl::bench::Seconds;

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
  data.num_classes = data.vocabulary.size = 90;
  data.tokens.resize_discard(data.num_rows * data.num_features);
  fl::RandomSequence random(1, fl::Purpose::synthetic_data);
  for (std::int32_t& token : data.tokens) token = static_cast<std::int32_t>(random.below(90));
  for (std::size_t r = 0; r < data.num_rows; ++r) data.label.push_back(static_cast<std::int32_t>(random.below(90)));
  return data;
}

// Colour images of random pixels.
fl::Dataset<float> random_images() {
  fl::Dataset<float> data;
  data.name = "images";
  data.num_rows = 600 * 7;
  data.shape = {3, 32, 32};
  data.num_features = 3 * 32 * 32;
  data.num_classes = 10;
  data.allocate_dense();
  fl::RandomSequence random(2, fl::Purpose::synthetic_data);
  for (float& pixel : data.dense) pixel = static_cast<float>(random.uniform());
  for (std::size_t r = 0; r < data.num_rows; ++r) data.label.push_back(static_cast<std::int32_t>(random.below(10)));
  return data;
}

// Million operations of a convolution of B images to `size` x `size` pixels.
double conv(double B, double in, double out, double kernel, double size, int products) {
  return 2 * B * in * out * kernel * kernel * size * size * products / 1e6;
}

// ResNet-18 for 32 x 32 pixels.
double resnet18_operations(double B) {
  double all = conv(B, 3, 64, 3, 32, 2) + dense(B, 512, 10, 3);
  double size = 32, before = 64;
  for (const double width : {64.0, 128.0, 256.0, 512.0}) {
    if (width > 64) size /= 2;
    all += conv(B, before, width, 3, size, 3) + 3 * conv(B, width, width, 3, size, 3);
    if (width > 64) all += conv(B, before, width, 1, size, 3);
    before = width;
  }
  return all;
}

// VGG-11 for 32 x 32 pixels: eight convolutions, five halvings, one dense layer.
const std::vector<std::pair<double, bool>> kVgg = {{64, true},   {128, true}, {256, false}, {256, true},
                                                   {512, false}, {512, true}, {512, false}, {512, true}};
double vgg11_operations(double B) {
  double all = dense(B, 512, 10, 3), size = 32, before = 3;
  for (const auto& [width, halves] : kVgg) {
    all += conv(B, before, width, 3, size, before == 3 ? 2 : 3);
    before = width;
    if (halves) size /= 2;
  }
  return all;
}
fl::Value vgg11_layers() {
  fl::Value::List layers;
  for (const auto& [width, halves] : kVgg) {
    layers.push_back({"conv2d(" + std::to_string(static_cast<int>(width)) + ", 3, padding=1)"});
    layers.push_back({std::string("relu")});
    if (halves) layers.push_back({std::string("max_pool(2)")});
  }
  layers.push_back({std::string("flatten")});
  layers.push_back({std::string("dense(classes)")});
  return fl::Value{layers};
}

// The networks, two clients of each.
class Bench {
 public:
  Bench()
      : data_(fl::load_data<float>({.name = "fashion-mnist"}, fl::DataCatalog()).train), text_(random_text()), images_(random_images()) {
    const double conv1 = 32.0 * 28 * 28 * 25 * 32 * 2 / 1e6, conv2 = 32.0 * 14 * 14 * 800 * 64 * 2 / 1e6;
    const double le1 = 32.0 * 28 * 28 * 25 * 6 * 2 / 1e6, le2 = 32.0 * 10 * 10 * 150 * 16 * 2 / 1e6;
    const double lstm = dense(32 * 80, 8 + 256, 4 * 256, 3) + dense(32 * 80, 512, 4 * 256, 3) + dense(32, 256, 90, 3);
    works_ = {
        {"MLP 784-200-10, batch 32", "mlp", {}, 32, dense(32, 784, 200, 2) + dense(32, 200, 10, 3), 200},
        {"2NN 784-200-200-10, batch 10",
         "2nn_mcmahan",
         {},
         10,
         dense(10, 784, 200, 2) + dense(10, 200, 200, 3) + dense(10, 200, 10, 3),
         400},
        {"LeNet-5, batch 32",
         "lenet5",
         {},
         32,
         2 * le1 + 3 * le2 + dense(32, 400, 120, 3) + dense(32, 120, 84, 3) + dense(32, 84, 10, 3),
         20},
        {"CNN of McMahan, batch 32", "cnn_mcmahan", {}, 32, 2 * conv1 + 3 * conv2 + dense(32, 3136, 512, 3) + dense(32, 512, 10, 3), 3},
        {"LSTM 2x256x80, batch 32", "char_lstm", {}, 32, lstm, 1},
        {"ResNet-18, group norm, batch 20", "resnet18", {}, 20, resnet18_operations(20), 1},
        {"VGG-11, batch 20", "neural_network", {std::pair("layers", vgg11_layers())}, 20, vgg11_operations(20), 1},
    };
  }
  [[nodiscard]] const std::vector<Work>& works() const { return works_; }
  // The steps of a work, one client per thread.
  Seconds steps_of(const Work& work, int threads) {
    auto& clients = clients_[work.label];
    if (clients.empty()) {
      for (int k = 0; k < 2; ++k) clients.push_back(std::make_unique<Client>(work, data_of(work)));
      clients[0]->run(pools_.of(1).exec(0));
    }
    return fl::bench::seconds_of([&] {
      pools_.of(threads).parallel_for(static_cast<std::uint32_t>(threads),
                                      [&](std::uint32_t k, const fl::Exec& exec) { clients[k]->run(exec); });
    });
  }
  Seconds peak(int threads) { return fl::bench::peak_of(pools_.of(threads)); }

 private:
  [[nodiscard]] const fl::Dataset<float>& data_of(const Work& work) const {
    if (work.model == "char_lstm") return text_;
    return work.model == "resnet18" || work.model == "neural_network" ? images_ : data_;
  }
  fl::Dataset<float> data_, text_, images_;
  std::vector<Work> works_;
  std::map<std::string, std::vector<std::unique_ptr<Client>>> clients_;
  fl::bench::Pools pools_;
};

// Seconds of one step, all threads taking one.
Seconds answer(Bench& bench, const std::string& name, int threads, double& operations) {
  operations = fl::bench::kPeakWork * threads;
  if (name == "peak") return bench.peak(threads);
  for (const Work& work : bench.works())
    if (work.label.starts_with(name)) {
      const Seconds all = bench.steps_of(work, threads);
      operations = 1e6 * work.mega_operations * threads;
      return {all.wall / work.steps, all.processor / work.steps};
    }
  throw fl::ConfigError("no network is called '" + name + "'");
}

void print(Bench& bench, const Work& work, int repeats) {
  fl::bench::Samples peak, step, peak2, step2;
  for (int i = 0; i < repeats; ++i) {
    peak.add(bench.peak(1));
    step.add(bench.steps_of(work, 1));
    peak2.add(bench.peak(2));
    step2.add(bench.steps_of(work, 2));
  }
  const double gflops = fl::bench::kPeakWork / median(peak.processor) / 1e9, seconds = median(step.processor) / work.steps;
  const double scaling = 2 * median(step.wall) / median(step2.wall), limit = 2 * median(peak.wall) / median(peak2.wall);
  std::printf("%-30s %8.3f ms  %6.1f GFLOP/s of %6.1f: %.2f of the peak   2 x %.2f, the peak 2 x %.2f: %.2f\n", work.label.c_str(),
              1e3 * seconds, work.mega_operations / 1e3 / seconds, gflops, work.mega_operations / 1e3 / seconds / gflops, scaling, limit,
              scaling / limit);
}

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  if (argc > 1 && std::string(argv[1]) == "--serve")
    return fl::bench::serve(
        [&](const std::string& name, int threads, double& operations) { return answer(bench, name, threads, operations); });
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 9;
  for (const Work& work : bench.works())
    if (argc <= 2 || work.label.find(argv[2]) != std::string::npos) print(bench, work, repeats);
}
